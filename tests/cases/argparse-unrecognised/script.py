import argparse

parser = argparse.ArgumentParser(prog="train.py")
parser.add_argument("--lr", type=float, default=1e-4)
args = parser.parse_args(["--lr", "3e-4", "--warmup_ratio", "0.1"])
