import ctypes
import faulthandler

faulthandler.enable()
print("epoch 0 loss 0.7", flush=True)
ctypes.string_at(0)
