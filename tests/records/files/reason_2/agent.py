import mscgym


class Drawn(mscgym.Agent):
    def propose(self, n):
        return [self.draw() for _ in range(n)]


Drawn.run()
