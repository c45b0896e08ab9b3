"""Two small transformers over bytes: an encoder like BERT, and a decoder like GPT with its cache."""
import torch

WIDTH, HEADS, LAYERS, LENGTH = 256, 4, 4, 64
BYTES, PAD = 256, 256  # a token is a byte, or padding


def split(x):
    """[N, T, WIDTH] to [N, HEADS, T, WIDTH / HEADS]."""
    return x.reshape(x.shape[0], -1, HEADS, WIDTH // HEADS).transpose(1, 2)


def attend(query, key, value, mask):
    """Attention, with its heads concatenated; `mask` is added to the scores."""
    scores = query @ key.transpose(2, 3) / (WIDTH // HEADS) ** 0.5 + mask
    mixed = scores.softmax(-1) @ value
    return mixed.transpose(1, 2).reshape(query.shape[0], -1, WIDTH)


def feed_forward(activation):
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, 4 * WIDTH), activation,
                               torch.nn.Linear(4 * WIDTH, WIDTH))


class Embedding(torch.nn.Module):
    """Embeddings of tokens and of positions; the latter are learned, starting from waves."""

    def __init__(self, tokens):
        super().__init__()
        self.token = torch.nn.Embedding(tokens, WIDTH)
        self.place = torch.nn.Embedding(2 * LENGTH, WIDTH)
        torch.nn.init.normal_(self.token.weight, std=0.3)
        places = torch.arange(2 * LENGTH)[:, None] / 1000 ** torch.linspace(0, 1, WIDTH // 2)
        self.place.weight.data = 0.5 * torch.cat([places.sin(), places.cos()], 1)

    def forward(self, tokens, places):
        return self.token(tokens) + self.place(places)


class EncoderLayer(torch.nn.Module):
    """Normalises after attention and after the feed-forward part."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.mix = (
            torch.nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.feed = feed_forward(torch.nn.GELU())
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(2))

    def forward(self, x, mask):
        mixed = attend(split(self.query(x)), split(self.key(x)), split(self.value(x)), mask)
        x = self.norms[0](x + self.mix(mixed))
        return self.norms[1](x + self.feed(x))


class Encoder(torch.nn.Module):
    """Two scores for each of the tokens [N, T]; tokens count where the mask is 1."""

    def __init__(self):
        super().__init__()
        self.embedding = Embedding(PAD + 1)
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.layers = torch.nn.ModuleList(EncoderLayer() for _ in range(LAYERS))
        self.head = torch.nn.Linear(WIDTH, 2)

    def forward(self, tokens, mask):
        hidden = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        x = self.norm(self.embedding(tokens, torch.arange(tokens.shape[1])))
        for layer in self.layers:
            x = layer(x, hidden)
        return self.head(x)


class DecoderLayer(torch.nn.Module):
    """Normalises before attention and before the feed-forward part."""

    def __init__(self):
        super().__init__()
        self.query_key_value = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = torch.nn.Linear(WIDTH, WIDTH)
        self.feed = feed_forward(torch.nn.GELU(approximate="tanh"))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(2))

    def forward(self, x, mask, past):
        query, key, value = map(split, self.query_key_value(self.norms[0](x)).split(WIDTH, 2))
        key, value = torch.cat([past[0], key], 2), torch.cat([past[1], value], 2)
        x = x + self.mix(attend(query, key, value, mask))
        return x + self.feed(self.norms[1](x)), (key, value)


class Decoder(torch.nn.Module):
    """Scores of the byte after each of the tokens [N, T], and keys and values of all layers. Those of
    earlier tokens, [N, HEADS, P, WIDTH / HEADS], are extended to [N, HEADS, P + T, WIDTH / HEADS].
    """

    def __init__(self):
        super().__init__()
        self.embedding = Embedding(BYTES)
        self.layers = torch.nn.ModuleList(DecoderLayer() for _ in range(LAYERS))
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.head = torch.nn.Linear(WIDTH, BYTES, bias=False)

    def forward(self, tokens, *past):
        before, count = past[0].shape[2], tokens.shape[1]
        places = torch.arange(before, before + count)
        later = torch.arange(before + count)[None, :] > places[:, None]
        x, present = self.embedding(tokens, places), []
        for i, layer in enumerate(self.layers):
            x, cache = layer(x, later.float() * -10000.0, past[2 * i:2 * i + 2])
            present += cache
        return (self.head(self.norm(x)), *present)


def no_past(count):
    """The decoder's initial past, which is empty."""
    return [torch.zeros(count, HEADS, 0, WIDTH // HEADS) for _ in range(2 * LAYERS)]
