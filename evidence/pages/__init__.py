"""The pages that no hand writes: of every row of the tables, of every public name, of the examples and commands."""
