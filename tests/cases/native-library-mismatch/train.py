import ctypes
import pathlib
import subprocess

# an extension built against another release of a library: a symbol that it needs is gone
pathlib.Path("ext.c").write_text("extern int old_kernel_v1(int); int run(int x) { return old_kernel_v1(x); }\n")
subprocess.run(["gcc", "-shared", "-fPIC", "-o", "libext.so", "ext.c"], check=True)
ctypes.CDLL("./libext.so", mode=ctypes.RTLD_GLOBAL | 2)
