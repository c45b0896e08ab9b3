import mscgym


class Talkative(mscgym.Environment):
    def space(self):
        return {"tasks": [self.task(f"t{i}", [8, 6, 4]) for i in range(3)],
                "metrics": [self.metric("distill_loss")]}

    def evaluate(self, choices, bound):
        if sum(choices) % 3 == 2:
            raise mscgym.Failed("too narrow: " + "\u00fc" * 150)
        if choices[0] == 2:
            raise mscgym.Failed("two\nlines")
        return {"distill_loss": sum(c * (i + 1) for i, c in enumerate(choices)) / 8}


Talkative.run()
