import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float)
parser.parse_args(["--learning-rate", "0.1"])
