class Wrapper:
    def __getattr__(self, name):
        return getattr(self.inner, name)


Wrapper().forward
