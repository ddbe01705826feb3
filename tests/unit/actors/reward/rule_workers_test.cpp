// The rules `math` and `code` in real workers: what is right, what is wrong, what has no score; and
// programs that fork, spin, eat memory, print without end, write files, open sockets, look for the
// tests' answers or signal their parent, each of which is contained.
#include "actors/reward/rule_workers.hpp"

#include "tests/unit/actors/reward/answered.hpp"
#include "tests/unit/actors/reward/calls_stage.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace troupe::actors::reward {
namespace {

constexpr core::Duration kLong = std::chrono::minutes(5);

struct Judged {
  std::vector<std::optional<double>> values;
  std::vector<std::string> causes, extras;
};

// One group with the label.
Judged judged(CallsStage& stage, const std::string& label, const std::vector<std::string>& texts) {
  RewardGroup group = answered("", "", label);
  group.samples.clear();
  for (const std::string& text : texts)
    group.samples.push_back({text});
  const auto answers = stage.score({group}, kLong);
  Judged out;
  EXPECT_TRUE(answers[0]) << answers[0].error().message;
  if (!answers[0]) return out;
  for (const RewardScore& score : *answers[0]) {
    out.values.push_back(score.value);
    out.causes.push_back(score.cause);
    out.extras.push_back(score.extra);
  }
  return out;
}

using Values = std::vector<std::optional<double>>;

// ---- math

class MathRule : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto made = make_math_reward(1, nullptr, 1);
    why_ = made ? "" : made.error().message;
    if (made) stage_ = new CallsStage(std::move(*made));
  }
  static void TearDownTestSuite() {
    delete stage_;
    stage_ = nullptr;
  }
  void SetUp() override {
    if (stage_ == nullptr) GTEST_SKIP() << "LOUD SKIP: " << why_;
  }
  static CallsStage* stage_;
  static std::string why_;
};
CallsStage* MathRule::stage_ = nullptr;
std::string MathRule::why_;

TEST_F(MathRule, AnswersAreComparedAsMathematics) {
  EXPECT_EQ(
      judged(*stage_, "0.5", {"$\\frac{1}{2}$", "so \\boxed{1/2}", "it is 0.50", "0.51"}).values,
      (Values{1, 1, 1, 0}));
  EXPECT_EQ(judged(*stage_, "\\frac{1}{2}", {"0.5", "$\\boxed{\\frac{2}{4}}$", "2"}).values,
            (Values{1, 1, 0}));
  EXPECT_EQ(judged(*stage_, "x^2+1", {"$1+x^2$", "$x^2$"}).values, (Values{1, 0}));
}

TEST_F(MathRule, AnAnswerThatCannotBeReadIs0AndCounted) {
  const Judged got = judged(*stage_, "3", {"no idea", "", "$$" + std::string(3000, '('), "3"});
  EXPECT_EQ(got.values, (Values{0, 0, 0, 1}));
  EXPECT_EQ(got.extras[0], R"({"math_stuck":0,"math_unparsed":1})");
  EXPECT_EQ(got.extras[1], R"({"math_stuck":0,"math_unparsed":1})");
  EXPECT_EQ(got.extras[3], R"({"math_stuck":0,"math_unparsed":0})");
}

// A power tower: sympy would compute for ever, deaf to signals. The next one is judged.
TEST_F(MathRule, OneThatNeverEndsIs0AndTheNextIsJudged) {
  const Judged got = judged(*stage_, "3", {"\\boxed{9^{9^{9^9}}}", "3"});
  EXPECT_EQ(got.values, (Values{0, 1}));
  EXPECT_EQ(got.extras[0], R"({"math_stuck":1,"math_unparsed":1})");
}

TEST_F(MathRule, ALabelThatCannotBeReadIsNoScore) {
  const Judged got = judged(*stage_, "", {"3"});
  EXPECT_EQ(got.values, (Values{std::nullopt}));
  EXPECT_EQ(got.causes[0], "the label '' cannot be read as mathematics");
}

// Between dollars they would be products of letters, whose order does not matter.
TEST_F(MathRule, WordsAreNoMathematicsUnlessTheyStandBetweenDollars) {
  for (const std::string label : {"see figure", "No solution", "???", "undefined"}) {
    const Judged got = judged(*stage_, label, {"\\boxed{figure see}", "\\boxed{" + label + "}"});
    EXPECT_EQ(got.values, (Values{std::nullopt, std::nullopt})) << label;
  }
  EXPECT_EQ(judged(*stage_, "$see$", {"$ese$"}).values, (Values{1}));
  EXPECT_EQ(judged(*stage_, "B", {"\\boxed{B}", "\\boxed{C}"}).values, (Values{1, 0}));
  EXPECT_EQ(judged(*stage_, "xy", {"$yx$", "$x$"}).values, (Values{1, 0}));
  EXPECT_EQ(judged(*stage_, "sin(x)", {"$sin(x)$", "$x$"}).values, (Values{1, 0})) << "a function";
  EXPECT_EQ(judged(*stage_, "\\frac{AB}{CDE}", {"$\\frac{AB}{CDE}$"}).values, (Values{1}));
}

TEST_F(MathRule, AnAnswerStandsBehindTheThinking) {
  const Judged got = judged(*stage_, "4",
                            {"<think> maybe \\boxed{4}", "<think>\\boxed{5}</think> \\boxed{4}",
                             "\\boxed{5}</think>\\boxed{4}", "<think>\\boxed{4}</think> who knows",
                             "<think>a</think>\\boxed{4}<think>\\boxed{4}", "\\boxed{4}"});
  EXPECT_EQ(got.values, (Values{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(got.extras[0], R"({"math_stuck":0,"math_unparsed":1})");
}

// ---- code

constexpr const char* kAsserts =
    R"(["assert f(1) == 2", "assert f(3) == 4", "assert abs(f(0.5) - 1.5) < 1e-9"])";
constexpr const char* kInputsAndOutputs =
    R"({"inputs": ["1 2\n", "3 4\n"], "outputs": ["3\n", "7"]})";

class CodeRule : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto made = make_code_reward({.timeout_s = 2, .memory_mb = 256});
    why_ = made ? "" : made.error().message;
    if (made) stage_ = new CallsStage(std::move(*made));
  }
  static void TearDownTestSuite() {
    delete stage_;
    stage_ = nullptr;
  }
  void SetUp() override {
    if (stage_ == nullptr) GTEST_SKIP() << "LOUD SKIP: " << why_;
  }
  // What the program printed for an empty input, as far as it is `wanted`.
  static std::optional<double> prints(const std::string& program, const std::string& wanted) {
    const std::string label = R"({"inputs": [""], "outputs": [")" + wanted + R"("]})";
    return judged(*stage_, label, {program}).values[0];
  }
  static std::optional<double> share(const std::string& program) {
    return judged(*stage_, kAsserts, {program}).values[0];
  }
  // The first line of the error that a statement raises.
  static std::string raising(const std::string& statement) {
    return "import os, sys\ntry:\n    " + statement +
           "\n    print('done')\nexcept BaseException as error:\n    print(type(error).__name__)\n";
  }
  static CallsStage* stage_;
  static std::string why_;
};
CallsStage* CodeRule::stage_ = nullptr;
std::string CodeRule::why_;

TEST_F(CodeRule, TheScoreIsTheShareOfTestsThatPass) {
  const std::string half = "```python\ndef f(x):\n    return 2\n```";
  const Judged got = judged(*stage_, kAsserts,
                            {"def f(x):\n    return x + 1", half, "def f(x: return", "no program"});
  EXPECT_EQ(got.values, (Values{1, 1.0 / 3, 0, 0}));
  EXPECT_EQ(got.extras[0], R"({"code_stopped":0})");
  EXPECT_EQ(
      judged(*stage_, kInputsAndOutputs, {"print(sum(map(int, input().split())))", "print(3)"})
          .values,
      (Values{1, 0.5}));
  EXPECT_EQ(judged(*stage_, R"({"setup": "y = 5", "asserts": ["assert f(y) == [5, (1.5, None)]"]})",
                   {"def f(x):\n    return [x, (1.5, None)]"})
                .values,
            (Values{1}));
}

TEST_F(CodeRule, LinesEndAtLineFeedsAlone) {
  for (const std::string sign :
       {"\\x0b", "\\x0c", "\\x1c", "\\x1d", "\\x1e", "\\x85", "\\u2028", "\\u2029", "\\r"}) {
    EXPECT_EQ(prints("print('1" + sign + "2')", "1\\n2"), 0.0) << sign;
  }
  EXPECT_EQ(prints("print('1\\n2')", "1\\n2"), 1.0);
  EXPECT_EQ(prints("print('1\\r\\n2 \\r\\n')", "1\\n2"), 1.0) << "white space at the end";
  EXPECT_EQ(prints("print('1 2')", "1\\n2"), 0.0);
}

TEST_F(CodeRule, AllOrNothing) {
  auto made = make_code_reward({.timeout_s = 2, .memory_mb = 256, .score = "all"});
  ASSERT_TRUE(made) << made.error().message;
  CallsStage all(std::move(*made));
  EXPECT_EQ(
      judged(all, kInputsAndOutputs, {"print(sum(map(int, input().split())))", "print(3)"}).values,
      (Values{1, 0}));
}

TEST_F(CodeRule, ATestThatEndsTheInterpreterFailsAlone) {
  EXPECT_EQ(share("import os\ndef f(x):\n    if x == 1: os._exit(0)\n    return x + 1"), 2.0 / 3);
}

TEST_F(CodeRule, ALabelWithoutTestsIsNoScore) {
  for (const auto& [label, cause] : std::vector<std::pair<std::string, std::string>>{
           {"", "it is not JSON"},
           {"[]", "it has no test"},
           {"7", "it is neither a list of asserts"},
           {R"(["assert f("])", "an assert is not Python"},
           {R"([1])", "its asserts and setup must be texts"},
           {R"({"inputs": ["a"], "outputs": []})", "it has 1 inputs and 0 outputs"},
           {R"({"inputs": "a", "outputs": []})", "must be lists of texts"}}) {
    const Judged got = judged(*stage_, label, {"def f(x): return x"});
    EXPECT_EQ(got.values, (Values{std::nullopt})) << label;
    EXPECT_NE(got.causes[0].find("the label holds no tests: "), std::string::npos);
    EXPECT_NE(got.causes[0].find(cause), std::string::npos) << got.causes[0];
  }
}

TEST_F(CodeRule, AProgramThatSpinsIsStopped) {
  const Judged got = judged(*stage_, kAsserts, {"while True: pass", "def f(x): return x + 1"});
  EXPECT_EQ(got.values, (Values{0, 1}));
  EXPECT_EQ(got.extras[0], R"({"code_stopped":1})");
}

TEST_F(CodeRule, AForkBombIsContained) {
  EXPECT_EQ(share("import os\nwhile True:\n    os.fork()"), 0.0);
  EXPECT_EQ(prints("import os, time\ncount = 0\ntry:\n  while count < 100:\n"
                   "    if os.fork() == 0: time.sleep(60)\n    count += 1\n"
                   "except OSError: print(count < 16)",
                   "True"),
            1.0);
  EXPECT_EQ(share("def f(x): return x + 1"), 1.0);
}

TEST_F(CodeRule, OneThatEatsMemoryIsContained) {
  EXPECT_EQ(prints("kept = []\ntry:\n  while True: kept.append(bytearray(1 << 20))\n"
                   "except MemoryError:\n  count = len(kept); kept = []\n  print(count < 256)",
                   "True"),
            1.0);
}

TEST_F(CodeRule, OneThatPrintsAGigabyteIsStopped) {
  const Judged got = judged(*stage_, kInputsAndOutputs, {"while True: print('x' * 100000)"});
  EXPECT_EQ(got.values, (Values{0}));
  EXPECT_EQ(got.extras[0], R"({"code_stopped":1})");
}

TEST_F(CodeRule, ItWritesInItsFolderAlone) {
  EXPECT_EQ(prints(raising("open('/tmp/own', 'w').write('a')"), "done"), 1.0);
  // Where the interpreter lies under /tmp, too, it shows there.
  EXPECT_EQ(
      prints("import os, sys\nown = [path.split('/') for path in [sys.prefix, sys.base_prefix, "
             "*sys.path]]\nown = {path[2] for path in own if path[1:2] == ['tmp']}\n"
             "print(sorted(set(os.listdir('/tmp')) - own))",
             "['program.py']"),
      1.0)
      << "nothing is left of another";
  for (const char* path : {"/usr/x", "/etc/x", "/x", "/dev/x"})
    EXPECT_EQ(prints(raising("open('" + std::string(path) + "', 'w')"), "OSError"), 1.0) << path;
  EXPECT_EQ(prints("try:\n  with open('/tmp/big', 'wb') as file:\n"
                   "    while True: file.write(b'x' * (1 << 20))\nexcept OSError: print('full')",
                   "full"),
            1.0);
}

TEST_F(CodeRule, ItOpensNoSocketAndLooksIntoNoProcess) {
  EXPECT_EQ(prints(raising("import socket; socket.socket()"), "PermissionError"), 1.0);
  EXPECT_EQ(prints(raising("import socket; socket.socket(socket.AF_UNIX)"), "PermissionError"),
            1.0);
  EXPECT_EQ(prints("import ctypes\nlibc = ctypes.CDLL(None)\n"
                   "print(libc.unshare(0x10000000), libc.ptrace(16, 1, 0, 0), "
                   "libc.mount(b'n', b'/tmp', b'tmpfs', 0, None))",
                   "-1 -1 -1"),
            1.0);
  EXPECT_EQ(prints("import ctypes, os\nlibc = ctypes.CDLL(None)\n"
                   "print(libc.personality(0xffffffff), libc.memfd_create(b'x', 0), "
                   "libc.syscall(434, os.getpid(), 0))",
                   "-1 -1 -1"),
            1.0)
      << "personality, memfd_create, pidfd_open";
  EXPECT_EQ(prints("import os; print(os.getppid(), os.path.exists('/proc/1'))", "0 False"), 1.0);
}

// The files of this host, the tests' among them, are not there; nor are they in the memory or the
// environment of the program.
TEST_F(CodeRule, ItReadsNeitherTheHostsFilesNorTheAnswers) {
  const auto file =
      std::filesystem::temp_directory_path() / ("troupe_answers_" + std::to_string(::getpid()));
  std::ofstream(file) << "the answers";
  EXPECT_EQ(prints(raising("open('" + file.string() + "').read()"), "FileNotFoundError"), 1.0);
  std::filesystem::remove(file);
  EXPECT_EQ(prints("import os, sys; print(sys.argv[1:], 'asserts' in str(os.environ))", "[] False"),
            1.0);
  // The value that is wanted stays with the judge; one that claims to equal everything is not it.
  EXPECT_EQ(judged(*stage_, R"(["assert f() == 7391846"])",
                   {"class Any:\n    def __eq__(self, other): return True\ndef f(): return Any()"})
                .values,
            (Values{0}));
  // One that knows what it looks for, without spelling it, does not find it.
  EXPECT_EQ(
      judged(*stage_, R"(["assert f() == 7391846"])",
             {"import gc\ndef f():\n    wanted = ''.join(map(chr, (55, 51, 57, 49, 56, 52, 54)))\n"
              "    for one in gc.get_objects():\n"
              "        if isinstance(one, (dict, list)) and wanted in str(one)[:5000]:\n"
              "            return int(wanted)"})
          .values,
      (Values{0}));
}

TEST_F(CodeRule, ItCannotSignalItsParentOrOutliveItself) {
  EXPECT_EQ(prints("import os\nos.kill(0, 9)\nprint('alone')", "alone"), 1.0);
  EXPECT_EQ(prints(raising("os.kill(-1, 9)"), "ProcessLookupError"), 1.0);
  EXPECT_EQ(prints("import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(600)\n"
                   "print('bye')",
                   "bye"),
            1.0);
  EXPECT_EQ(share("def f(x): return x + 1"), 1.0);
  EXPECT_EQ(stage_->amount("starts"), 1) << "the worker is the first one still";
}

}  // namespace
}  // namespace troupe::actors::reward
