"""A store on a fake of its service; a test that names no service is run with each of them."""

import pytest

from object_services import SERVICES
from optimist.core.testing import ManualClock


@pytest.fixture(params=SERVICES, ids=lambda kind: kind.name)
def kind(request):
    return request.param


@pytest.fixture
def service(kind):
    with kind.fake() as service:
        yield service


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(kind, service, clock):
    return kind.store(service.options(), clock=clock)


@pytest.fixture
def commit(kind):
    """The path of a commit."""
    return kind.url("t/_delta_log/00000000000000000000.json")


@pytest.fixture
def probed(kind, service, store):
    """The store when the endpoint has been probed already, and nothing has been asked since."""
    store.put_if_absent(kind.url("other"), b"x")
    service.objects.clear()
    service.requests.clear()
    return store
