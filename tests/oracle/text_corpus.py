"""Odd strings for tokenizer tests: hand-picked ones, then mixtures drawn with a fixed seed."""

import random

HAND_PICKED = [
    "", " ", "  ", "\n", "\t", "\r\n", "\r", "\x00", "\x7f", "\x85", "\u00a0", "\u200b", "\ufeff",
    "a", "A", "1", "12", "123", "1234567890", "3.14159", "1,000,000", "-7", "1e-5", "0x1F", "½ ² ٣ Ⅷ １２",
    "Hello, world!", "hello world", "HELLO WORLD", "  leading", "trailing  ", "a  b   c    d",
    "I'm you're they'll we've he'd don't CAN'T", "it’s “quoted” – dash — em", "e.g. i.e. etc.",
    "The quick brown fox jumps over the lazy dog.", "supercalifragilisticexpialidocious",
    "def f(x):\n    return x + 1\n", "if (a && b || !c) { x[i++] = *p; }", "<html><b>&amp;</b></html>",
    "{\"k\": [1, 2.5, null, true]}", "SELECT * FROM t WHERE a='b';", "a->b::c<d>", "\\n\\t\\\\",
    "https://example.com/a?b=c&d=%20#e", "user@example.com", "C:\\path\\file.txt", "$100 €200 £300 ¥400",
    "日本語のテキスト", "中文字符，标点。", "한국어 문장", "Привет мир", "مرحبا بالعالم", "שלום עולם", "नमस्ते दुनिया",
    "ภาษาไทย", "Ελληνικά", "Tiếng Việt", "ქართული", "ᚠᛇᚻ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "🙂", "👩‍👩‍👧‍👦", "🇩🇪🇯🇵", "👍🏽", "❤️", "☃︎☃️",
    "é", "e\u0301", "Å", "A\u030a", "ﬁ ﬂ", "ß ẞ", "İi", "\u202eabc\u202c", "\u0000\u0001\u0002", "\ud7ff\ue000",
    "\uffff", "\U0010ffff", "a\u0300\u0301\u0302\u0303\u0304", "zero\u200dwidth", "soft\u00adhyphen", "…‥․",
    "<|im_start|>user\nhi<|im_end|>\n", "<|endoftext|>", "<|im_end|><|im_end|>", "a<|im_start|>b",
    "<|im_start", "|im_end|>", "< |im_end|>", "<|IM_END|>", "<s>x</s>", "[CLS] x [SEP]", "<pad><unk>",
    " <|im_end|> ", "<|im_end|>\n\n<|im_start|>", "\u2581a\u2581\u2581b", "Ġa", "<0x41>", "##ing ing",
    "\n\n\n", " \n \n ", "\t\t\tx", "a\n\n\nb", "a \n b", "   \n   x", "\u3000全角", "\u2003em\u2009thin", "x\u2028y\u2029z",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ababababababababababab", "." * 50, "-" * 33, "=" * 17, "#" * 9,
    "!?!?!?", "(((())))", "[[[]]]", "\"\"\"", "'''", "``` ```", "~~~", "@@@@", "___", "* * *", "1.2.3.4", "v1.0-rc3",
    "word" * 60, "日" * 70, "🙂" * 20, " " * 100, "0" * 100, "a b " * 40,
]

PIECES = [
    " ", "  ", "\n", "\t", "\r\n", "a", "the ", " The", "ing", "tion", "x1", "42", "007", "3.5", ",", ".", "...", "!", "?", ":",
    "'s", "'ll", "’s", "\"", "(", ")", "{", "}", "[", "]", "<", ">", "/", "\\", "=", "==", "+=", "->", "_", "-", "–", "#", "@", "$", "€",
    "é", "ü", "ß", "ñ", "Ж", "да", "日", "本語", "中", "한", "ع", "ש", "न", "ไ", "α", "ﬁ", "🙂", "👩‍💻", "🇫🇷", "\u0301", "\u200d",
    "\u00a0", "\u3000", "\u200b", "\ufeff", "½", "²", "٣", "Ⅷ", "１", "\x00", "\x1b", "<|im_start|>", "<|im_end|>", "<|endoftext|>",
    "<s>", "</s>", "<unk>", "<0x0A>", "\u2581", "Ġ", "def ", "return", "{% if %}", "hello", "WORLD", "CamelCase", "snake_case",
]


def corpus(size, seed=7):
    """`size` strings, the hand-picked ones first."""
    random_source = random.Random(seed)
    strings = list(HAND_PICKED)
    while len(strings) < size:
        kind = random_source.random()
        if kind < 0.7:
            count = random_source.randrange(1, 25)
            strings.append("".join(random_source.choice(PIECES) for _ in range(count)))
        else:  # any scalar values
            count = random_source.randrange(1, 30)
            points = (random_source.randrange(0x110000 if kind < 0.8 else 0x3000)
                      for _ in range(count))
            strings.append("".join(chr(p) for p in points if not 0xD800 <= p < 0xE000))
    return strings[:size]
