"""The collations that Spark knows.

Spark refuses a text that names another.
"""

from __future__ import annotations

import re

__all__ = ["is_collation"]

_LOCALES = """
    UNICODE af am ar ar_SAU as az be bg blo bn bo br bs bs_Cyrl ca ceb chr cs cy da de de_AUT dsb dz
    ee el en en_USA eo es et fa fa_AFG ff ff_Adlm fi fil fo fr fr_CAN fy ga gl gu ha haw he he_ISR
    hi hr hsb hu hy id id_IDN ig is it ja ka kk kk_Arab kl km kn ko kok ku ky lb lij lkt ln lo lt lv
    mk ml mn mr ms mt my nb nb_NOR ne nl nn no nso om or pa pa_Guru pa_Guru_IND pl ps pt ro ru sa se
    si sk sl smn sq sr sr_Cyrl sr_Cyrl_BIH sr_Cyrl_MNE sr_Cyrl_SRB sr_Latn sr_Latn_BIH sr_Latn_SRB
    st sv sw ta te th tk tn to tr ug uk ur uz vi wae wo xh yi yo zh zh_Hans zh_Hans_CHN zh_Hans_SGP
    zh_Hant zh_Hant_HKG zh_Hant_MAC zh_Hant_TWN zu
"""
_KNOWN = frozenset(_LOCALES.upper().split())
_BY_BYTES = re.compile(r"UTF8_(?:BINARY|LCASE)(?:_RTRIM)?")
_MODIFIER = re.compile(r"_(?:(C[IS])|(A[IS])|(RTRIM))$")
_SCHEMA = ("SYSTEM", "BUILTIN")


def is_collation(*names: str) -> bool:
    """Tell whether a name is a collation's, with or without the schema of collations."""
    *schema, name = (part.upper() for part in names)
    if tuple(schema) not in ((), _SCHEMA):
        return False
    if _BY_BYTES.fullmatch(name):
        return True
    given: set[int | None] = set()
    while (match := _MODIFIER.search(name)) is not None:
        if match.lastindex in given:
            return False
        given.add(match.lastindex)
        name = name[: match.start()]
    return name in _KNOWN
