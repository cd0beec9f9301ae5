import re

answers = ["The answer is 42.", "So we get #### 17", "It must be seven."]
correct = 0
for text, gold in zip(answers, [42, 17, 7]):
    correct += int(re.search(r"answer is (\d+)", text).group(1)) == gold
print(correct / len(answers))
