import collections

config = collections.namedtuple("Config", "batch_size")(32)
print(config.batchsize)
