// Rows that are streamed through a buffer (data.shuffle_buffer): a run that is killed in the middle
// of a pass and goes on has the bits of one that was not, and memory does not grow with the files.
#include "supervised_support.hpp"

#include <sys/resource.h>

namespace troupe::test {
namespace {

using Words = std::vector<std::string>;

// The words of a supervised run over `rows` in place of its own rows, without an evaluation.
Words streamed(const TinySupervised& files,
               const Method& method,
               const std::string& rows,
               const std::string& run,
               int steps,
               int buffer) {
  Words words = files.words(method, run, steps);
  const auto value = [&](const char* flag) {
    return std::find(words.begin(), words.end(), flag) + 1;
  };
  *value("--data.dataset") = rows;
  words.erase(value("--eval.dataset") - 1, value("--eval.dataset") + 1);
  words.insert(words.end(), {"--data.shuffle_buffer", std::to_string(buffer), "--eval.steps", "0"});
  return words;
}

const Method& method_of(const std::string& name) {
  return *std::find_if(methods().begin(), methods().end(),
                       [&](const Method& one) { return one.name == name; });
}

void write_rows(const std::filesystem::path& file, int first, int count) {
  std::ofstream out(file);
  for (int i = first; i < first + count; ++i) {
    out << nlohmann::json({{"input", std::to_string(i) + "+1="},
                           {"output", std::to_string(i + 1)},
                           {"chosen", std::to_string(i + 1)},
                           {"rejected", "fish"},
                           {"label", i % 3 != 0}})
        << '\n';
  }
}

// The most that any program of this test has held so far, in bytes.
std::int64_t peak_bytes() {
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  return used.ru_maxrss * 1024LL;
}

}  // namespace

TEST(Streams, KilledInTheMiddleOfAPassEqualsAnUnbrokenRun) {
  const TinySupervised files;
  write_rows(files / "a.jsonl", 0, 19);
  write_rows(files / "b.jsonl", 19, 10);
  const std::string rows = files.file("a.jsonl") + "," + files.file("b.jsonl");
  for (const char* name : {"sft", "dpo", "rm", "kto"}) {
    const Method& method = method_of(name);
    const std::string whole = std::string(name) + "_whole", killed = std::string(name) + "_killed";
    // 9 steps of 4 are one pass over 29 rows, and a part of the next.
    const ProgramRun unbroken = run_troupe(streamed(files, method, rows, whole, 9, 5));
    ASSERT_EQ(unbroken.status, 0) << unbroken.output;
    EXPECT_NE(unbroken.output.find("training rows, streamed: 29 with "), std::string::npos)
        << unbroken.output;
    const Words again = streamed(files, method, rows, killed, 9, 5);
    for (const std::size_t at : {2u, 5u, 8u}) {
      kill_once(start_troupe(again, files / "log"), [&] { return steps_in(files / killed) >= at; });
    }
    const ProgramRun resumed = run_troupe(again);
    ASSERT_EQ(resumed.status, 0) << resumed.output << text_of(files / "log");
    EXPECT_EQ(lines_of(files / whole), lines_of(files / killed)) << name;
    const auto hashes = hashes_of(files / whole / "ckpt" / "step_000009");
    EXPECT_FALSE(hashes.empty());
    EXPECT_EQ(hashes, hashes_of(files / killed / "ckpt" / "step_000009")) << name;
  }
  // The buffer is part of the order, and no buffer is another one.
  const Words other = streamed(files, method_of("sft"), rows, "other", 9, 4);
  ASSERT_EQ(run_troupe(other).status, 0);
  EXPECT_NE(lines_of(files / "other"), lines_of(files / "sft_whole"));
  const Words held = streamed(files, method_of("sft"), rows, "held", 9, 0);
  ASSERT_EQ(run_troupe(held).status, 0);
  EXPECT_NE(lines_of(files / "held"), lines_of(files / "sft_whole"));
}

TEST(Streams, PromptsOfAKilledRunGoOnToo) {
  const TinyRun files;
  const Words more = {"--data.shuffle_buffer", "3"};
  const ProgramRun whole = run_troupe(files.words("whole") + more);
  ASSERT_EQ(whole.status, 0) << whole.output;
  for (const std::size_t at : {3u, 6u}) {
    kill_once(start_troupe(files.words("killed") + more, files / "log"),
              [&] { return lines_in(files / "killed" / "metrics.jsonl") >= at; });
  }
  const ProgramRun resumed = run_troupe(files.words("killed") + more);
  ASSERT_EQ(resumed.status, 0) << resumed.output << text_of(files / "log");
  EXPECT_EQ(metrics_of(files / "whole"), metrics_of(files / "killed"));
  const auto hashes = hashes_of(files / "whole" / "ckpt" / "step_000010");
  EXPECT_FALSE(hashes.empty());
  EXPECT_EQ(hashes, hashes_of(files / "killed" / "ckpt" / "step_000010"));
}

// 8 MB of rows are some 50 MB as tokens. Streamed, they cost less than the file has.
TEST(Streams, MemoryDoesNotGrowWithTheFile) {
  const TinySupervised files;
  const auto write = [&](const char* name, int rows) {
    std::ofstream out(files / name);
    for (int i = 0; i < rows; ++i)
      out << R"({"input": "q )" << std::string(30, 'x') << i << R"(", "output": "a )"
          << std::string(30, 'y') << i << "\"}\n";
    return files.file(name);
  };
  const auto peak_of = [&](const std::string& rows, const std::string& run, int buffer) {
    Words words = streamed(files, method_of("sft"), rows, run, 2, buffer);
    words.insert(words.end(), {"--train.micro_tokens_max", "100"});
    const ProgramRun ended = run_troupe(words);
    EXPECT_EQ(ended.status, 0) << ended.output;
    return peak_bytes();
  };
  const std::int64_t few = peak_of(write("few.jsonl", 100), "few", 50);
  const std::string many = write("many.jsonl", 80'000);
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(many));
  ASSERT_GT(bytes, 8'000'000);
  EXPECT_LT(peak_of(many, "many", 50) - few, bytes / 2);
  // The measure would see it: a buffer for all rows takes more, and so do rows that are held.
  EXPECT_GT(peak_of(many, "held", 0) - few, 2 * bytes);
}

TEST(Streams, WhatCannotBeStreamedIsRefusedByName) {
  const TinySupervised files;
  write_rows(files / "a.jsonl", 0, 8);
  const std::string rows = files.file("a.jsonl");
  const auto expect_refused = [&](const Words& more, const std::string& rows_of,
                                  const std::string& why) {
    const Words words = streamed(files, method_of("dpo"), rows_of, "refused", 2, 5) + more;
    const Ended run = troupe_ends(words, files / "log", 60);
    EXPECT_NE(run.status, 0) << run.text;
    EXPECT_NE(run.text.find(why), std::string::npos) << run.text;
  };
  expect_refused(
      {"--data.probs", "0.5,0.5"}, rows + "," + rows,
      "data.shuffle_buffer: streams sets one after the other, and data.probs mixes them");
  expect_refused(
      {"--data.rows_together", "4"}, rows,
      "data.shuffle_buffer: shuffles single rows, and data.rows_together keeps neighbours "
      "together");
  std::ofstream(files / "list.json") << "[" << text_of(files / "a.jsonl").substr(0, 20) << "]";
  expect_refused({}, files.file("list.json"), "one list of objects, which is read whole");
  std::ofstream(files / "a.jsonl", std::ios::app) << "{\"input\": \"9+1=\"}\n";
  expect_refused({}, rows, "a.jsonl:9: no column 'chosen'");
}

}  // namespace troupe::test
