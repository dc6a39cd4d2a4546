"""Other API servers: which groups and versions they serve, whether they can be reached, and how requests get there."""
