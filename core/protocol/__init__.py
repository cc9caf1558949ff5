"""What a table is made of: actions, features, properties, and the gates that guard them."""
