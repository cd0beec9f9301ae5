import pathlib

from torch.utils.cpp_extension import load

pathlib.Path("scan.cu").write_text("__global__ void scan(float* x) { x[0] = 0; }\n")
scan = load("scan", ["scan.cu"], verbose=True)
