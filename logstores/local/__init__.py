"""Local disks and mounts."""
