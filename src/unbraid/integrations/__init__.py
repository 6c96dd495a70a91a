"""At home in other libraries: each file speaks for one, and imports it when it is used."""
