"""The parts of a table: actions, features, properties, and the gates that guard them."""
