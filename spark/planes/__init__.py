"""Which plane a table is read and written on."""
