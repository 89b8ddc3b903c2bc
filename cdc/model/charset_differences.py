"""Where MySQL's character sets differ from Python's codecs of the same bytes.

From a character's bytes (in hexadecimal) to the text of it and of those that follow it; a question mark stands for
bytes to which MySQL gives no character, or one of ASCII, which would mean something else in a statement. A test
compares every character with the server's answer.
"""

__all__ = ["DIFFERENCES"]

DIFFERENCES = {
    "armscii8": {
        "a1": ("❁§։??»«—?՝??՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’?"),
    },
    "big5": {
        "a15a": "\ufffd",
        "a1c3": "\ufffd",
        "a1c5": "\ufffd",
        "a1fe": "\ufffd",
        "a240": "\ufffd",
        "a2cc": "\ufffd",
        "a2ce": "\ufffd",
        "f9d6": "\u7881\u92b9\u88cf\u58bb\u6052\u7ca7\u5afa",
    },
    "cp1256": {
        "8a": "?",
        "8f": "?",
        "98": "?",
        "9a": "?",
        "9f": "?",
        "aa": "?",
        "c0": "?",
        "ff": "?",
    },
    "cp866": {
        "fc": "ⁿ²",
    },
    "cp932": {
        "80": "?",
        "a0": "?",
        "fd": "???",
    },
    "dec8": {
        "a4": "?",
        "a6": "?",
        "a8": "¤",
        "ac": "????",
        "b4": "?",
        "b8": "?",
        "be": "?",
        "d0": "?",
        "d7": "Œ",
        "dd": "Ÿ?",
        "f0": "?",
        "f7": "œ",
        "fd": "ÿ??",
    },
    "eucjpms": {
        "8fa2b7": "\uff5e",
        "8fa2c3": "\uffe4",
        "8ff3f3": "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡ",
        "8ff4a1": (
            "ⅢⅣⅤⅥⅦⅧⅨⅩ\uff07\uff02\u3231№℡\u70bb\u4efc\u50f4\u51ec\u5307\u5324\ufa0e\u548a\u5759\ufa0f"
            "\ufa10\u589e\u5bec\u5cf5\u5d53\ufa11\u5fb7\u6085\u6120\u654e\u663b\u6665\ufa12\uf929"
            "\u6801\ufa13\ufa14\u6a6b\u6ae2\u6df8\u6df2\u7028\ufa15\ufa16\u7501\u7682\u769e\ufa17"
            "\u7930\ufa18\ufa19\ufa1a\ufa1b\u7ae7\ufa1c\ufa1d\u7da0\u7dd6\ufa1e\u8362\ufa1f\u85b0"
            "\ufa20\ufa21\u8807\ufa22\u8b7f\u8cf4\u8d76\ufa23\ufa24\ufa25\u90de\ufa26\u9115\ufa27"
            "\ufa28\u9592\uf9dc\ufa29\u973b\u974d\u9751\ufa2a\ufa2b\ufa2c\u999e\u9ad9\u9b72\ufa2d"
            "\u9ed1"
        ),
    },
    "gb18030": {
        "a8bc": "ḿ",
        "8135f437": "\ue7c7",
    },
    "geostd8": {
        "80": "€?‚?„…†‡?‰?‹?????‘’“”•–—???›????",
        "c0": "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ???????????????????????№??",
    },
    "greek": {
        "a1": "ʽʼ",
        "a4": "??",
        "aa": "?",
    },
    "hebrew": {
        "af": "‾",
    },
    "keybcs2": {
        "80": "Č",
        "83": "ď",
        "85": "ĎŤčěĚĹÍľĺ",
        "8f": "Á",
        "91": "žŽ",
        "95": "ÓůÚý",
        "9b": "ŠĽÝŘť",
        "a4": "ňŇŮÔšřŕŔ¼¡",
        "b5": "╡╢╖╕",
        "bd": "╜╛",
        "c6": "╞╟",
        "cf": "╧╨╤╥╙╘╒╓╫╪",
        "dd": "▌▐",
        "e0": "α",
        "e2": "ΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡",
        "f7": "≈",
        "f9": "∙·√ⁿ²",
    },
    "koi8u": {
        "95": "•",
    },
    "sjis": {
        "815f": "?",
    },
    "tis620": {
        "a0": "\ufffd",
        "db": "\ufffd\ufffd\ufffd\ufffd",
        "fc": "\ufffd\ufffd\ufffd\ufffd",
    },
    "ujis": {
        "a1c0": "?",
    },
}
