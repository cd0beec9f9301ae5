import json

# what the server returned with max_tokens=40 (finish_reason: length)
ANSWER = '{"name": "Ada Lovelace", "born": 1815, "works": ["Notes on the Analytical Engine", "Letters to Charles Ba'


def parse_answer(text):
    return json.loads(text)


print("finish_reason length, 40 tokens")
print(parse_answer(ANSWER))
