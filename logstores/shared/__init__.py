"""What several stores are made of."""
