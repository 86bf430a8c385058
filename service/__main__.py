"""`python -m service`: the same as the command `scoregate-server`."""

from scoregate_server import main

if __name__ == "__main__":
    main()
