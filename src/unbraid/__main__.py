"""`python -m unbraid`: the command where its folder is not on the path."""

from unbraid.cli import main

if __name__ == "__main__":
    main()
