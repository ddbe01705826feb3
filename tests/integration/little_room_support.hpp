// Starts of the program under limits on address space or on processes: each must end, with 0 or 3,
// and say in one line what the system refused. Used on a test's main thread.
#pragma once

#include "few_files_support.hpp"

namespace troupe::test {

// One way to start the program.
struct Start {
  std::string name;
  std::vector<std::string> words;
};

// A control group that bounds how many processes and threads there are in it; removed at the end.
class Processes {
 public:
  Processes() {
    const std::string name = "troupe-test-" + std::to_string(::getpid());
    for (const char* root : {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"}) {
      folder_ = std::filesystem::path(root) / name;
      std::error_code error;
      if (!std::filesystem::exists(std::filesystem::path(root) / "cgroup.procs", error)) continue;
      if (!std::filesystem::create_directory(folder_, error)) continue;
      there_ = std::filesystem::exists(folder_ / "pids.max", error);
      if (there_) return;
      std::filesystem::remove(folder_, error);
    }
  }
  ~Processes() {
    std::error_code error;
    if (there_) within(10, [&] { return std::filesystem::remove(folder_, error); });
  }
  bool there() const { return there_; }
  // `troupe WORDS...` in the group, with room for `most`.
  std::vector<std::string> limited_to(int most, const std::vector<std::string>& words) const {
    return std::vector<std::string>{"/bin/bash", "-c",
                                    "echo " + std::to_string(most) + " > " +
                                        (folder_ / "pids.max").string() + " && echo $$ > " +
                                        (folder_ / "cgroup.procs").string() +
                                        " && exec \"$0\" \"$@\"",
                                    troupe_program()} +
           words;
  }

 private:
  std::filesystem::path folder_;
  bool there_ = false;
};

class LittleRoom : public testing::Test {
 protected:
  Start training(const std::string& transport) const {
    return {transport,
            files_.words(transport) + std::vector<std::string>{"--cluster.transport", transport,
                                                               "--train.max_steps", "1",
                                                               "--cluster.head_wait_s", "0"}};
  }
  Start generating() const {
    return {"generate",
            {"generate", "--model", files_.model(), "--prompt", "1+1=", "--max-new-tokens", "2"}};
  }
  Start serving() const { return {"serve", {"serve", "--model", files_.model(), "--port", "0"}}; }

  // Runs it under `ulimit OPTIONS`; a server is stopped as soon as it listens. Returns its status.
  int expect_good_end(const Start& start, const std::string& options, double limit_s) {
    return expect_good_end(start, limited(options, start.words), options, limit_s);
  }
  int expect_good_end(const Start& start,
                      const std::vector<std::string>& words,
                      const std::string& limit,
                      double limit_s) {
    std::filesystem::remove_all(files_ / start.name);
    Background program(words, files_ / (start.name + ".out"));
    const auto end = std::chrono::steady_clock::now() + Seconds(limit_s);
    bool stopped = false;
    while (program.running() && std::chrono::steady_clock::now() < end) {
      if (start.name == "serve" && !stopped && program.says("http://")) {
        stopped = true;
        program.signal(SIGTERM);
      }
      program.wait(0.02);
    }
    const auto status = program.wait(0);
    const std::string where = start.name + " under " + limit + ":\n" + program.text();
    EXPECT_TRUE(status.has_value()) << "a hang: " << where;
    const bool good = status == 0 || status == 3 || (stopped && status == 130);
    EXPECT_TRUE(good) << "status " << status.value_or(-1) << ", " << where;
    if (status == 3) {
      EXPECT_EQ(count("\n" + program.text(), "\nerror: "), 1u) << where;
      EXPECT_NE(program.text().find("hint: "), std::string::npos) << where;
    }
    return status.value_or(-1);
  }

  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++found;
    return found;
  }

  TinyRun files_;
};

}  // namespace troupe::test
