"""Small Jinja templates, one point of the language each, for text_template_test.py.

Rendered with CONTEXT by us and by transformers; both must print the same or both must fail.
"""

CONTEXT = {
    "n": 7,
    "big": 12345678901234567,
    "neg": -7,
    "f": 2.5,
    "tiny": 1.5e-7,
    "huge": 1e22,
    "whole": 3.0,
    "yes": True,
    "no": False,
    "null": None,
    "empty": "",
    "s": "  Hello, Wörld ½!\n\tline two\x0b\x1c ",
    "csv": "a,b,,c",
    "words": "the quick  brown\tfox-jumps (over) [it]",
    "quote": "it's \"both\" \\ \u00e9\u200b\u0301\U0001f600",
    "html": "<a href='x'>&amp;\"</a>",
    "xs": [3, 1, 2],
    "names": ["bob", "Alice", "carol", "alice"],
    "mixed": [1, "a", None, True, 2.0, [1, {"k": "v"}], {"a": [], "b": {}}],
    "d": {"b": 2, "a": 1, "C": 3},
    "nest": {"x": {"y": [{"z": "deep"}]}, "items": "shadowed", "type": "object"},
    "people": [
        {"name": "Ann", "age": 30, "tags": ["x"]},
        {"name": "bob", "age": 25, "tags": []},
        {"name": "Cy", "age": 30},
    ],
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}],
}

SNIPPETS = r"""
{{ n }} {{ big }} {{ neg }} {{ f }} {{ tiny }} {{ huge }} {{ whole }} {{ yes }} {{ no }} {{ null }}
{{ 1e16 }} {{ 1e15 }} {{ 123456789.123 }} {{ 0.0001 }} {{ 0.00001 }} {{ -0.0 }} {{ 1.0e5 }} {{ 5e-324 }}
{{ mixed }} | {{ d }} | {{ nest }} | {{ quote }} | {{ [quote] }} | {{ ["it's"] }} | {{ ['"', "\n\t\r\x07"] }}
{{ (1,) }} {{ () }} {{ (1, "a") }} {{ [] }} {{ {} }} {{ {"a": (1, 2), 3: none, true: 1.5} }}
{{ undefined_name }}[{{ d.missing }}][{{ d["missing"] }}][{{ xs[99] }}][{{ null.x }}][{{ n.x }}]
{{ undefined_name.attr }}
{{ undefined_name["k"] }}
{{ d.missing.deeper }}
{{ undefined_name() }}
{{ undefined_name + 1 }}
{{ 1 + undefined_name }}
{{ undefined_name ~ "x" }}{{ undefined_name == other_undefined }}{{ undefined_name != 1 }}{{ undefined_name|length }}
{{ undefined_name < 1 }}
{{ "a" in undefined_name }}{{ undefined_name in xs }}{% for x in undefined_name %}x{% else %}none{% endfor %}
{{ not undefined_name }}{{ undefined_name is defined }}{{ undefined_name is undefined }}{{ undefined_name or "or" }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2.0 ** 3 }}
{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ 1 + 2.5 }} {{ 3 * 1.5 }} {{ 3 - 5 }} {{ true + true }}
{{ 1 / 0 }}
{{ 1 % 0 }}
{{ "a" + 1 }}
{{ "a" * 3 }}{{ 3 * "b" }}{{ "c" * 0 }}{{ "c" * -2 }}{{ [1, 2] * 2 }}{{ (1,) * 3 }}{{ [1] + [2] }}{{ (1,) + (2,) }}
{{ [1] + (2,) }}
{{ 1 ~ 2 ~ none ~ true ~ 1.0 ~ [1] }}
{{ -n }} {{ -f }} {{ -(2) }} {{ - 3 + 5 }} {{ 2 - -2 }} {{ -n|abs }} {{ -2 ** 2 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 < 2 > 1 == true }} {{ "a" < "b" }} {{ "B" < "a" }} {{ [1, 2] < [1, 3] }} {{ 1 == 1.0 }} {{ 1 == true }} {{ "1" == 1 }}
{{ "a" < 1 }}
{{ 1 in xs }} {{ 9 not in xs }} {{ "a" in d }} {{ "ell" in s }} {{ "" in s }} {{ none in mixed }} {{ [1] in [[1]] }}
{{ 1 in "a1" }}
{{ 1 in 5 }}
{{ yes and n }} {{ no and n }} {{ empty or "x" }} {{ n or 1 }} {{ not n }} {{ not not n }} {{ 0 or none }} {{ yes and empty }}
{{ "yes" if n > 5 else "no" }}{{ "only" if no }}{{ 1 if yes else 2 if no else 3 }}
{{ xs[0] }}{{ xs[-1] }}{{ s[2] }}{{ s[-5] }}{{ xs[true] }}{{ d["a"] }}{{ nest.x.y[0].z }}{{ nest["x"]["y"][0]["z"] }}{{ xs.0 }}
{{ xs[1:] }}{{ xs[:-1] }}{{ xs[::-1] }}{{ xs[::2] }}{{ xs[5:] }}{{ xs[-2:] }}{{ xs[:99] }}{{ xs[-99:1] }}{{ xs[2:0:-1] }}{{ xs[:] }}
{{ "abcdef"[1:4] }}{{ "abcdef"[::-1] }}{{ "abcdef"[-3:] }}{{ "abcdef"[4:1:-1] }}{{ "äöü"[1:] }}{{ (1,2,3)[1:] }}
{{ xs[::0] }}
{{ null[1:] }}
{{ n[1:] }}
{{ undefined_name[1:] }}
{{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.get("a") }} {{ d.get("zz") }} {{ d.get("zz", 5) }} {{ d|items|list }}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}
{{ d|dictsort(true) }}{{ d|dictsort(false, "value", reverse=true) }}
{{ nest.items is string }}{{ nest["items"] }}
{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ s|trim }}|{{ "xxaxx".strip("x") }}|{{ "xyaxy".lstrip("yx") }}|{{ "..a..".rstrip(".") }}|{{ "xax"|trim("x") }}
{{ csv.split(",") }}{{ csv.split(",", 1) }}{{ csv.rsplit(",", 1) }}{{ words.split() }}{{ words.split(none, 2) }}{{ "  a b  ".split() }}{{ " a  b c ".split(maxsplit=1) }}{{ " a  b c ".rsplit(None, 1) }}{{ "".split() }}{{ "".split(",") }}
{{ "a".split("") }}
{{ "a\nb\r\nc\n\nd".splitlines() }}{{ "a\nb\n".splitlines(true) }}{{ "".splitlines() }}
{{ csv.replace(",", ";") }}{{ csv.replace(",", "", 1) }}{{ csv|replace(",", "--") }}{{ csv|replace(",", "-", 2) }}{{ "abc".replace("", "-") }}
{{ s.upper() }}{{ s.lower() }}{{ "hello world it's".title() }}{{ "hELLO wORLD".capitalize() }}{{ "aB".swapcase() }}{{ "straße".upper() }}{{ "ΑΣ".lower() }}{{ "ǆx".title() }}{{ "ßa".capitalize() }}
{{ words|title }}|{{ words|capitalize }}|{{ words|upper }}|{{ words|wordcount }}|{{ "a_b c"|wordcount }}
{{ "abc".startswith("ab") }}{{ "abc".startswith(("x", "a")) }}{{ "abc".endswith("bc") }}{{ "abc".endswith(("x",)) }}
{{ "abc".startswith(1) }}
{{ "abcabc".find("c") }}{{ "abcabc".rfind("c") }}{{ "abc".find("z") }}{{ "abcabc".count("bc") }}{{ "abc".index("c") }}{{ "äbc".find("b") }}{{ "aaa".count("aa") }}{{ "abc".count("") }}
{{ "abc".index("z") }}
{{ ",".join(["a", "b"]) }}{{ "-".join("abc") }}{{ ", ".join(d) }}
{{ ",".join([1, 2]) }}
{{ "12".isdigit() }}{{ "1a".isdigit() }}{{ "ab".isalpha() }}{{ "a1".isalnum() }}{{ " \t".isspace() }}{{ "".isspace() }}{{ "aB".islower() }}{{ "AB1".isupper() }}{{ "1".isupper() }}
{{ "ab".center(6) }}|{{ "ab".center(5, "*") }}|{{ "ab".ljust(4, ".") }}|{{ "ab".rjust(4) }}|{{ "-5".zfill(4) }}|{{ "ab"|center(7) }}|
{{ "a=b=c".partition("=") }}{{ "a=b=c".rpartition("=") }}{{ "abc".partition("x") }}{{ "abc".rpartition("x") }}{{ "prefix-x".removeprefix("prefix-") }}{{ "x.txt".removesuffix(".txt") }}
{{ "{} and {}".format(1, "b") }}{{ "{0}{1}{0}".format("a", "b") }}{{ "{x}".format(x=3) }}{{ "{{}}".format() }}
{{ "%s is %d or %5.2f %x %05d %-4s| %r %%" % ("a", 3, 2.5, 255, 42, "b", "q") }}{{ "%s" % "x" }}{{ "%s-%s"|format("a", 1) }}{{ "%(a)s" % {"a": 1} }}{{ "%s" % none }}
{{ "%d" % "x" }}
{{ "%s %s" % "x" }}
{{ xs.append(4) }}
{{ d.update({"z": 1}) }}
{{ d.pop("a") }}
{{ xs.index(1) }}{{ xs.count(2) }}{{ (1, 2).index(2) }}
{{ xs|length }}{{ s|length }}{{ d|count }}{{ "ä€😀"|length }}{{ undefined_name|count }}
{{ n|length }}
{{ xs|first }}{{ xs|last }}{{ []|first }}{{ "abc"|first }}{{ "abc"|last }}{{ xs|min }}{{ xs|max }}{{ xs|sum }}{{ names|min }}{{ names|max }}{{ []|max }}
{{ xs|sort }}{{ names|sort }}{{ names|sort(reverse=true) }}{{ names|sort(case_sensitive=true) }}{{ people|sort(attribute="age")|map(attribute="name")|list }}{{ people|sort(attribute="age,name", reverse=true)|map(attribute="name")|join }}
{{ mixed|sort }}
{{ names|unique|list }}{{ [1, 1.0, 2, "a", "A"]|unique|list }}{{ people|unique(attribute="age")|map(attribute="name")|list }}
{{ xs|reverse|list }}{{ "abc"|reverse }}{{ xs|list }}{{ "abc"|list }}{{ d|list }}
{{ xs|join }}{{ xs|join(", ") }}{{ people|join("/", attribute="name") }}{{ mixed|join("|") }}{{ "abc"|join("-") }}
{{ names|map("upper")|list }}{{ names|map("replace", "o", "0")|join(",") }}{{ people|map(attribute="tags")|list }}{{ people|map(attribute="tags", default="none")|list }}{{ people|map(attribute="tags.0")|list }}
{{ xs|select("odd")|list }}{{ xs|reject("odd")|list }}{{ xs|select("gt", 1)|list }}{{ mixed|select|list }}{{ mixed|select("string")|list }}{{ xs|select("in", [1, 2])|list }}
{{ people|selectattr("age", "equalto", 30)|map(attribute="name")|list }}{{ people|rejectattr("tags")|map(attribute="name")|list }}{{ people|selectattr("tags", "defined")|list|length }}{{ people|selectattr("age", ">", 26)|list|length }}
{% for age, group in people|groupby("age") %}{{ age }}:{{ group|map(attribute="name")|join(",") }};{% endfor %}
{{ [1,2,3,4,5]|batch(2)|list }}{{ [1,2,3,4,5]|batch(2, 0)|list }}{{ [1,2,3,4,5]|slice(2)|list }}{{ [1,2,3,4,5]|slice(3, "x")|list }}
{{ undefined_name|default("dft") }}{{ empty|default("dft") }}{{ empty|default("dft", true) }}{{ none|d("x") }}{{ none|d("x", boolean=true) }}{{ d.zz|default(1) }}
{{ "3"|int }}{{ "3.7"|int }}{{ "x"|int }}{{ "x"|int(5) }}{{ 3.9|int }}{{ -3.9|int }}{{ "ff"|int(base=16) }}{{ "0x1A"|int(0, 16) }}{{ none|int }}{{ " 12 "|int }}{{ true|int }}
{{ "3.5"|float }}{{ "x"|float }}{{ 3|float }}{{ "1e3"|float }}{{ "abc"|float(1.5) }}{{ " 2 "|float }}
{{ 2.5|round }}{{ 3.5|round }}{{ 2.675|round(2) }}{{ 1234.5|round(-2) }}{{ 2.1|round(method="ceil") }}{{ 2.19|round(1, "floor") }}{{ 5|round }}{{ -2.5|round }}
{{ -3|abs }}{{ -2.5|abs }}{{ n|string + "x" }}{{ none|string }}{{ 1.0|string }}{{ [1]|string }}{{ true|string|lower }}
{{ html|e }}{{ html|escape }}{{ html|safe }}{{ html }}{{ html|tojson }}
{{ "a\nb\n\nc"|indent }}|{{ "a\nb"|indent(2, true) }}|{{ "a\n\nb"|indent(2, blank=true) }}|{{ "a\nb\n"|indent(">>") }}|{{ ""|indent(first=true) }}
{{ "a long sentence that goes on"|truncate(10) }}|{{ "abcdefghijklmnopqrst"|truncate(8, true) }}|{{ "short"|truncate(3, leeway=5) }}|{{ "foo bar baz qux"|truncate(9, true, "", 0) }}
{{ mixed|tojson }}{{ d|tojson(indent=2) }}{{ d|tojson(sort_keys=true) }}{{ quote|tojson }}{{ quote|tojson(ensure_ascii=true) }}{{ s|tojson }}{{ [1.0, 1e20, 1e-7, -0.0]|tojson }}
{{ nest|tojson(indent=4) }}{{ []|tojson(indent=4) }}{{ {}|tojson(indent=4) }}{{ [[]]|tojson(indent=1) }}{{ d|tojson(separators=(",", ":")) }}{{ d|tojson(indent="\t") }}{{ {1: 2, true: 3, none: 4}|tojson }}
{{ undefined_name|tojson }}
{{ 1 is number }}{{ 1.5 is number }}{{ true is number }}{{ "1" is number }}{{ 1 is integer }}{{ true is integer }}{{ 1.0 is integer }}{{ 1.0 is float }}{{ true is boolean }}{{ 1 is boolean }}
{{ s is string }}{{ xs is string }}{{ d is mapping }}{{ xs is mapping }}{{ xs is sequence }}{{ s is sequence }}{{ d is sequence }}{{ n is sequence }}{{ none is sequence }}{{ undefined_name is sequence }}
{{ xs is iterable }}{{ s is iterable }}{{ n is iterable }}{{ none is iterable }}{{ undefined_name is iterable }}{{ undefined_name is mapping }}{{ undefined_name is string }}{{ undefined_name is none }}
{{ none is none }}{{ n is none }}{{ n is not none }}{{ yes is true }}{{ 1 is true }}{{ no is false }}{{ yes is sameas true }}{{ none is sameas none }}{{ n is odd }}{{ n is even }}{{ n is divisibleby 7 }}{{ n is divisibleby(2) }}
{{ n is eq 7 }}{{ n is equalto(7) }}{{ n is ne 7 }}{{ n is gt 3 }}{{ n is lt(3) }}{{ n is ge 7 }}{{ n is le 6 }}{{ 1 is in xs }}{{ "A" is upper }}{{ "a" is lower }}{{ range is callable }}{{ n is callable }}
{{ "upper" is filter }}{{ "nope" is filter }}{{ "odd" is test }}{{ not n is odd }}{{ n is not odd and yes }}
{% for x in xs %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }};{% endfor %}
{% for x in xs %}{{ loop.cycle("a", "b") }}{{ loop.changed(x > 1) }}{% endfor %}
{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}/{{ loop.length }}{% else %}none{% endfor %}{% for x in [] %}{% else %}empty{% endfor %}{% for x in xs if x > 9 %}{% else %}filtered{% endfor %}
{% for x in xs %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}{% for x in xs %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for a in [1, 2] %}{% for b in [3, 4] %}{% if b == 4 %}{% break %}{% endif %}{{ a }}{{ b }}{% endfor %}-{% endfor %}
{% for c in "aé" %}[{{ c }}]{% endfor %}{% for i in range(3) %}{{ i }}{% endfor %}{% for i in range(5, 1, -2) %}{{ i }}{% endfor %}{{ range(2, 4)|list }}{{ range(0)|list }}
{% for n in tree recursive %}{{ n.v }}{{ loop.depth0 }}{% if n.kids %}({{ loop(n.kids) }}){% endif %}{% endfor %}
{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }}{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% set x, y = 1, 2 %}{{ x }}{{ y }}
{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}
{% for x in n %}{% endfor %}
{% for x in none %}{% endfor %}
{% set x = 1 %}{% for i in [1, 2] %}{{ x }}{% set x = 5 %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(x=1, y="a") %}{% for i in [1, 2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z }}{% set ns.z = [1] %}{{ ns.z }}
{% set ns = namespace({"k": 1}) %}{{ ns.k }}{% set ns._x = 1 %}
{% if n > 5 %}{% set inner = 1 %}{% endif %}{{ inner }}{% with a = 1, b = 2 %}{{ a + b }}{% set c = 9 %}{{ c }}{% endwith %}{{ a }}{{ c }}
{% set a = 1 %}{% with a = 2, b = a %}{{ b }}{% endwith %}
{% set text %}  captured {{ n }} {% set q = 5 %}{% endset %}[{{ text }}]{{ q }}{% set up | upper | trim %} abc {% endset %}[{{ up }}]
{% filter upper %}abc {{ "d" }}{% endfilter %}{% filter replace("a", "b") | upper %}aaa{% endfilter %}
{% macro m(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c=4) }}{{ m(b=1, a=2) }}{{ m() }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}
{% macro fact(k) %}{% if k < 2 %}1{% else %}{{ k * fact(k - 1)|int }}{% endif %}{% endmacro %}{{ fact(6) }}
{% set out = "o" %}{% macro m() %}{{ out }}{{ late }}{% set out = "i" %}{{ out }}{% endmacro %}{% set late = "l" %}{{ m() }}{{ out }}
{% macro wrap(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call wrap("b") %}body {{ n }}{% endcall %}
{% macro each(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(v, i) each([5, 6]) %}[{{ i }}:{{ v }}]{% endcall %}
{% macro m(x) %}{{ x.a }}{% endmacro %}{{ m({"a": 1}) }}{{ m(x={"a": 2}) }}{{ m(**{"x": {"a": 3}}) }}{{ m(*[{"a": 4}]) }}
{{ dict(a=1, b=2) }}{{ dict({"x": 1}, y=2) }}{{ dict() }}
{% raw %}{{ not evaluated }} {% if %}{% endraw %}{# comment {{ x }} #}after
  {% if yes %}  
    kept
  {% endif %}  
tail {%- if yes -%}  trimmed  {%- endif -%}  end {%+ if yes %} plus {% endif +%}
   {#- c -#}   x   {{- n -}}   y
{{ "a" "b" 'c' }}{{ "\u00e9\x41\n\t\"\'\\" }}{{ 'it''s' }}
{{ [1, 2, ] }}{{ {"a": 1, } }}{{ 1_000 }}{{ 0x1f }}{{ 0b11 }}{{ 0o17 }}{{ .5 }}
{{ raise_exception("stop " ~ n) }}
{{ nope(1) }}
{{ s|nope }}
{{ s is nope }}
{{ s.nope() }}
{{ xs.strip() }}
{{ none.strip() }}
{{ null.get("x") }}
{{ d.a.b.c }}
{{ d[[1]] }}
{% include "x" %}
{% generation %}g{{ n }}{% set gx = 1 %}{% endgeneration %}[{{ gx }}]
  {%- generation -%}  g  {%- endgeneration -%}  |
{{ strftime_now("%Y")|length }}
{{ "ab" is string and "ab"|length == 2 and not no }}{{ (n > 5 and n < 10) or no }}
{% if n == 7 and s is string %}A{% elif no %}B{% else %}C{% endif %}{% if no %}A{% elif n > 6 %}B{% elif n > 5 %}D{% else %}C{% endif %}{% if no %}x{% endif %}
{% do xs.index(1) %}
{{ people[0].name ~ people[-1]["age"] }}{{ people[1].tags or "-" }}{{ (people|first).name }}{{ people|map(attribute="age")|sum }}
{{ "x" if people is not string and people is iterable }}{{ xs == [3, 1, 2] }}{{ d == {"a": 1, "b": 2, "C": 3} }}{{ people[0] == people[0] }}
{{ [n, f]|string }}{{ [none, true]|join }}{{ [[1, 2], [3]]|sum(start=[]) }}{{ people|sum(attribute="age") }}
{{ s|default("x")|trim|upper|lower|replace("h", "J")|length }}
{{ "%.3f"|format(3.14159) }}{{ "%5s|%-5s|"|format("a", "b") }}{{ "%+d"|format(5) }}{{ "% d"|format(5) }}{{ "%o"|format(8) }}{{ "%X"|format(255) }}{{ "%i"|format(3.9) }}
{{ 10 ** 30 }}{{ 99999999999999999999 + 1 }}{{ 2 ** 100 }}{{ -(2 ** 100) // 3 }}
{{ (xs|attr("count"))(1) if false }}{{ d|attr("a") }}
{{ loop }}{{ loop is defined }}
{% for x in [1] %}{{ loop is defined }}{% endfor %}
""".strip("\n").split("\n")

# Templates of several lines, where white space and line ends matter.
BLOCKS = [
    "{% if yes %}\n  a\n{% endif %}\n  {% if yes %}\nb\n  {% endif %}\nc\n\n",
    "a\r\nb\r{{ n }}\r\n{% if yes %}\r\nc{% endif %}\r\n",
    "{{ 'a\r\nb' }}\n",
    "\n\n{{ n }}\n\n",
    "  {# c #}  \nx\n{# c\nd #}\ny",
    "{%- for x in xs -%}\n  {{ x }}\n{%- endfor -%}\n",
    "{% for x in xs %}\n  - {{ x }}\n{% endfor %}\ntail\n",
    "{% for x in xs -%}\n  - {{ x }}\n{% endfor %}\n\t{%+ if yes %}x{% endif %}\n",
    "{% raw %}\n{{ x }}\n{% endraw %}\nend",
    "{%- raw -%}\n {{ x }} \n{%- endraw -%}\n end",
    "{% set x %}\n a\n{% endset %}\n[{{ x }}]",
    "{% macro m() %}\n x\n{% endmacro %}\n[{{ m() }}]\n",
    "text {% if yes %} inline {% endif %}\n\n next",
    "\t {% if yes %}\t\n\t{{ n }}\t\n \t{% endif %}\t\n.",
    "{{ n\n+\n1 }}",
    "{% if yes\n and n %}\nx{% endif %}",
    "{% generation %}\n{{ n }}\n{% endgeneration %}\n.",
    "",
    "plain",
    "\n",
    "{{ '\\n' }}\n",
]
