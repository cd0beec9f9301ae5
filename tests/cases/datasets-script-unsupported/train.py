import pathlib

from datasets import load_dataset

folder = pathlib.Path("my_corpus")
folder.mkdir(exist_ok=True)
(folder / "my_corpus.py").write_text("import datasets\n\nclass MyCorpus(datasets.GeneratorBasedBuilder):\n    pass\n")
print(load_dataset("my_corpus/my_corpus.py"))
