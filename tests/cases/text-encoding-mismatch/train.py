import pathlib

pathlib.Path("corpus.txt").write_text("Grüße aus Zürich\n", encoding="utf-8")
for line in open("corpus.txt"):
    print(len(line))
