"""The program's entry point: hands over to the command line."""

from podscaler.cli.main import cli


def main() -> None:
    """Run the command line; the exit status is the process's."""
    cli()


if __name__ == "__main__":
    main()
