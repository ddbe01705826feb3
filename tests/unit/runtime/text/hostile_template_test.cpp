// Templates that come with a foreign model and mean harm: each ends with an error that names the
// limit it met (or prints something small), in a process whose memory, CPU and stack are capped.
#include "runtime/text/chat_template.hpp"
#include "tests/unit/runtime/text/fixture.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <cstdlib>

namespace troupe::text {
namespace {

std::string times(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += text;
  return all;
}

const std::string kFuel = "fuel of 2000000";
const std::string kOutput = "output_bytes = 4194304";
const std::string kDepth = "depth = 64";

// The error of parsing or rendering `source`; empty if it printed.
std::string outcome(const std::string& source) {
  const auto chat = ChatTemplate::parse(source, {}, "hostile");
  if (!chat) return chat.error().message;
  const auto text = chat->render({{{"user", "x"}}});
  return text ? "" : text.error().message;
}

void meets(const std::string& source, const std::string& limit) {
  const auto message = outcome(source);
  EXPECT_NE(message.find(limit), std::string::npos)
      << source.substr(0, 120) << "\n -> " << message.substr(0, 300);
}

TEST(HostileTemplate, LoopsRunOutOfFuel) {
  meets(
      "{% for a in range(1000) %}{% for b in range(1000) %}{% for c in range(1000) %}"
      "{% endfor %}{% endfor %}{% endfor %}",
      kFuel);
  meets("{% for i in range(10**12) %}{% endfor %}", kFuel);
  meets("{{ [1] * 10**9 }}", kFuel);
  meets("{{ [1]|batch(10**12, 0) }}", kFuel);
  meets("{% set s = [1, 2, 3] %}" + times("{% set s = s + s %}", 60), kFuel);
  meets("{% set s = range(100000)|list %}{% for i in range(1000) %}{{ (s|sort)[0] }}{% endfor %}",
        kFuel);
}

TEST(HostileTemplate, WorkOnLongTextsCostsFuel) {
  const std::string text = "{% set s = 'a' * 1000000 %}{% set t = 'a' * 1000000 %}";
  for (const std::string body :
       {"{{ 'b' in s }}", "{{ s|length }}", "{{ s == t }}", "{{ s[i] }}", "{% set u = s.strip() %}",
        "{% set u = s.upper() %}", "{% set u = s.split('b') %}", "{% set u = s.splitlines() %}"}) {
    meets(text + "{% for i in range(100000) %}" + body + "{% endfor %}", kFuel);
  }
}

TEST(HostileTemplate, LongTextsMeetTheOutputLimit) {
  meets("{{ 'a' * 10**9 }}", kOutput);
  meets("{{ 'a' * 10**30 }}", kOutput);
  meets("{% set s = 'aaaaaaaa' %}" + times("{% set s = s ~ s %}", 60), kOutput);
  meets(
      "{% set n = namespace(s='aaaa') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}"
      "{% endfor %}",
      kOutput);
  meets("{% set s = 'a' * 10000 %}{{ s.replace('a', s) }}", kOutput);
  meets("{% set s = 'a' * 10000 %}{{ s|join(s) }}", kOutput);
  for (const std::string call :
       {"'a'.center(10**12)", "'a'|center(10**12)", "'a'.zfill(10**12)", "'a'|indent(10**12)",
        "'%1000000000000d' % 1", "'%.1000000000f' % 1.5", "'%9999999999999999999999s' % 1",
        "[1]|tojson(indent=10**12)", "'a'.ljust(10**30)"}) {
    meets("{{ " + call + " }}", kOutput);
  }
  meets("{{ 'a'*3000000" + times(" ~ 'a'*3000000", 200) + " }}", kOutput);
}

TEST(HostileTemplate, WhatIsWrittenMeetsTheOutputLimitCapturedOrNot) {
  const std::string loop = "{% for i in range(100000) %}" + times("x", 100000) + "{% endfor %}";
  meets(loop, kOutput);
  meets("{% set s %}" + loop + "{% endset %}", kOutput);
  meets("{% macro m() %}" + loop + "{% endmacro %}{% set s = m() %}", kOutput);
}

TEST(HostileTemplate, SharedStructureThatUnfoldsIsCounted) {
  const std::string folded = "{% set s = [1, 2, 3] %}" + times("{% set s = [s, s] %}", 60);
  meets(folded + "{{ s }}", kOutput);
  meets(folded + "{{ s|tojson }}", kOutput);
  meets(folded + "{{ s == s }}", kFuel);
  meets("{% set s = (1, 2) %}" + times("{% set s = (s, s) %}", 60) + "{{ {s: 1} }}", "unhashable");
}

TEST(HostileTemplate, NestingMeetsTheDepthLimit) {
  meets("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", kDepth);
  meets("{% macro m(n) %}{{ m(n) }}{{ m(n) }}{% endmacro %}{{ m(0) }}", kDepth);
  meets("{% macro m() %}" + times("{% if true %}", 140) + "{{ m() }}" + times("{% endif %}", 140) +
            "{% endmacro %}{{ m() }}",
        kDepth);
  meets("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", kDepth);
  meets("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}", kDepth);
  meets(
      "{% set n = namespace(s=[]) %}{% for i in range(100000) %}{% set n.s = [n.s] %}"
      "{% endfor %}",
      kDepth);
}

TEST(HostileTemplate, NoValueHoldsItself) {
  meets("{% set n = namespace() %}{% set n.s = n %}{{ n }}", "cannot hold a namespace");
  meets("{% set n = namespace() %}{% set n.s = [n] %}{{ n }}", "cannot be put into a list");
}

TEST(HostileTemplate, SourcesThatNestOrRepeatAreRefusedBeforeTheyRun) {
  meets("{{ " + times("(", 5000) + "1" + times(")", 5000) + " }}", "2048 tokens");
  meets("{{ " + times("1+", 5000) + "1 }}", "2048 tokens");
  meets(times("{{", 300000), "2048 tokens");
  meets(times("{%", 300000), "2048 tokens");
  meets(times("{% if 1 %}", 5000) + times("{% endif %}", 5000), "recursion");
  meets("{% if 0 %}" + times("{% elif 0 %}", 60000) + "{% endif %}", "512 elif");
  meets(times("x", (1 << 20) + 1), "1048576 bytes");
}

TEST(HostileTemplate, NumbersStayWithin128Bits) {
  meets("{{ 7 ** 999999999999 }}", "128 bits");
  meets("{{ 10 ** 10 ** 10 }}", "128 bits");
  meets("{{ (2 ** 126) * 100 }}", "128 bits");
}

TEST(HostileTemplate, CallerSetsTheLimits) {
  const auto chat = ChatTemplate::parse("{% for i in range(100) %}ab{% endfor %}", {}, "test");
  ASSERT_TRUE(chat);
  RenderOptions options;
  const auto error = [&] { return chat->render({{{"user", "x"}}}, options).error().message; };
  options.limits.output_bytes = 199;
  EXPECT_NE(error().find("output_bytes = 199"), std::string::npos) << error();
  options.limits.output_bytes = 200;
  EXPECT_TRUE(chat->render({{{"user", "x"}}}, options));
  options.limits.fuel = 50;
  EXPECT_NE(error().find("fuel of 50"), std::string::npos) << error();
  options.limits.fuel = 0;
  EXPECT_NE(error().find("above 0"), std::string::npos) << error();
}

TEST(HostileTemplate, DeepJsonOfTheCallerMeetsTheDepthLimit) {
  const auto chat = ChatTemplate::parse("x", {}, "test");
  for (const int depth : {70, 100000}) {
    const auto text =
        chat->render_json("[{\"role\": " + times("[", depth) + times("]", depth) + "}]");
    EXPECT_FALSE(text);
  }
}

// Everything that nests, on a thread with 1 MiB of stack.
TEST(HostileTemplate, OneMebibyteOfStackIsEnough) {
  const auto nesting = [](void*) -> void* {
    meets("{% macro m() %}" + times("{% if true %}", 140) + "{{ m() }}" +
              times("{% endif %}", 140) + "{% endmacro %}{{ m() }}",
          kDepth);
    for (const std::string& source :
         {"{{ " + times("1+", 1000) + "1 }}", "{{ " + times("not ", 1500) + "1 }}",
          "{{ 'a'" + times("|upper", 1000) + " }}", "{{ " + times("-", 1500) + "1 }}",
          "{{ " + times("1 if 1 else ", 500) + "1 }}",
          "{% if 0 %}" + times("{% elif 0 %}", 500) + "{% endif %}",
          "{{ a" + times(".a", 1000) + " }}", "{{ " + times("[", 100) + times("]", 100) + " }}"}) {
      (void)outcome(source);
    }
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  const std::size_t stack_bytes = 8u << 20;
#else
  const std::size_t stack_bytes = 1u << 20;
#endif
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, nesting, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The hungriest templates, within 1 GiB of address space in all.
[[noreturn]] void render_the_hungriest() {
  rlimit memory;
  memory.rlim_cur = memory.rlim_max = 1u << 30;
  setrlimit(RLIMIT_AS, &memory);
  meets("{% set s = 'a ' * 1000000 %}{% for i in range(100) %}{% set t = s.split() %}{% endfor %}",
        kFuel);
  meets(
      "{% set n = namespace(l=[]) %}{% for i in range(1000) %}"
      "{% set n.l = n.l + ['a' * 100000 ~ i] %}{% endfor %}",
      kFuel);
  meets("{% set s = 'a' * 2000000 %}{% for c in s %}{% endfor %}", kFuel);
  meets("{% set s = [1, 2, 3] %}" + times("{% set s = s + s %}", 60), kFuel);
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

TEST(HostileTemplateDeathTest, OneGibibyteOfMemoryIsEnough) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(render_the_hungriest(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace troupe::text
