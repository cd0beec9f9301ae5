import glob

files = sorted(glob.glob("data/*.npz"))
print("first", files[0])
