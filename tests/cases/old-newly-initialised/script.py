from transformers import BertConfig, BertForSequenceClassification, BertModel

BertModel(BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)).save_pretrained("encoder")
model = BertForSequenceClassification.from_pretrained("encoder", num_labels=3)
