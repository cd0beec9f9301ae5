"""A project with a check of its own."""

import json


def load(text):
    config = json.loads(text)
    if config["rounds"] % config["clients"]:
        raise ValueError(f"rounds ({config['rounds']}) must be a multiple of clients ({config['clients']})")
    return config


def main():
    config = load('{"rounds": 10, "clients": 4}')
    print(config)


if __name__ == "__main__":
    main()
