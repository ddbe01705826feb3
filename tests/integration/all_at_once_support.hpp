// A day of faults in one run: what outlives another run comes to its address, its metrics file is
// rotated, its reward prints, its environment hangs at one row, and a client of a server takes all
// that it can. `print_bytes`: of one call of the reward.
#pragma once

#include "tests/integration/outliving_support.hpp"
#include "tests/integration/serve_support.hpp"

namespace troupe::test {

class AllAtOnce : public Outliving {
 protected:
  AllAtOnce() {
    std::ofstream rows(files_ / "rows.jsonl");
    for (int i = 0; i < 6; ++i)
      rows << nlohmann::json({{"prompt", std::to_string(i) + "+1="}, {"answer", "a"}}) << "\n";
  }

  // The run of episodes, whose row "2+1=" does this and whose reward prints so much at each call.
  Words episodes(const std::string& name, const std::string& row, std::uint64_t print_bytes) {
    // In a folder of the run, since a reward has the name of its file.
    const auto own = files_ / (name + "_files");
    std::filesystem::create_directories(own);
    std::ofstream(own / "environment.py")
        << "import time\n"
           "class Environment:\n"
           "    def reset(self, row, seed):\n"
           "        self.bad = str(row['prompt']) == '2+1='\n"
           "        return {'text': 'say ' + str(row['prompt'])}\n"
           "    def step(self, message):\n"
           "        if self.bad:\n"
           "            " +
               row +
               "\n        letters = sum(c.isalpha() for c in message['content'] or '')\n"
               "        return {'reward': letters / 7, 'done': True}\n";
    std::ofstream(own / "length.py") << "import time\n"
                                        "def f(queries, prompts, labels):\n"
                                        "    for _ in range(" +
                                            std::to_string(print_bytes >> 20) +
                                            "):\n        print('\\x1b[31m' + 'x' * (1 << 20))\n"
                                            "    time.sleep(0.1)\n"
                                            "    return [len(query) / 100 for query in queries]\n";
    return {"--data.prompt_dataset",
            (files_ / "rows.jsonl").string(),
            "--env.python",
            (own / "environment.py").string(),
            "--env.turn_timeout_s",
            "0.5",
            "--reward.rule",
            "",
            "--reward.rule_pattern",
            "",
            "--reward.python",
            (own / "length.py").string(),
            "--rollout.batch_size",
            "2",
            "--rollout.n_samples_per_prompt",
            "2",
            "--train.max_steps",
            "8",
            "--rollout.generators",
            "0"};
  }

  void day(std::uint64_t print_bytes, double limit_s) {
    Background a = run("a", Words{"--rollout.generators", "0"} + endless());
    Background lent = node();
    ASSERT_TRUE(within(60, [&] { return updates_of("a") > 1; })) << a.text() << lent.text();
    Background guest = reward(), served = server();
    ASSERT_TRUE(within(
        60, [&] { return guest.says("scores from update") && served.says("serving version"); }))
        << guest.text() << served.text();
    a.kill();
    Background b = run("b", episodes("b", "time.sleep(3600)", print_bytes));
    expect_refused(guest, "reward-other-");
    expect_refused(served, "serve-");
    const auto metrics = files_ / "b" / "metrics.jsonl";
    ASSERT_TRUE(within(90, [&] { return updates_of("b") > 0; })) << b.text() << lent.text();
    std::filesystem::rename(metrics, files_ / "rotated.jsonl");
    a_greedy_key_leaves_room();
    EXPECT_EQ(b.wait(limit_s).value_or(-1), 0) << b.text() << lent.text();
    EXPECT_TRUE(log_says("b", "metrics.jsonl was removed or renamed")) << b.text();
    expect_small_logs();
    EXPECT_EQ(lent.wait(30).value_or(-1), 0) << lent.text();
    expect_clean_ledger("b");

    Words calm_words = episodes("calm", "raise ValueError('no such row')", 0);
    calm_words.back() = "1";  // a generator of its own
    Background calm = head("calm", calm_words);
    ASSERT_EQ(calm.wait(120).value_or(-1), 0) << calm.text();
    expect_same_bits("b", "calm");
  }

 private:
  void a_greedy_key_leaves_room() {
    const std::string greedy(32, 'g'), other(32, 'o');
    const auto keys = files_ / "keys";
    std::ofstream(keys) << greedy << " name=greedy\n" << other << " name=other\n";
    ::chmod(keys.c_str(), 0600);
    const Served shared({"--api-key-file", keys.string()});
    const auto with = [](const std::string& key) {
      return "Authorization: Bearer " + key + "\r\n";
    };
    for (int i = 0; i < 1100; ++i)
      shared.call("POST", "/sessions", "{}", with(greedy));
    const HttpAnswer opened = shared.call("POST", "/sessions", "{}", with(other));
    EXPECT_EQ(opened.status, 200) << opened.head << opened.body;
    EXPECT_EQ(shared.call("POST", "/pause", "", with(greedy)).status, 403);
    const nlohmann::json asked = {{"model", "tiny"}, {"prompt", "a"}, {"max_tokens", 2}};
    EXPECT_EQ(shared.call("POST", "/v1/completions", asked.dump(), with(other)).status, 200);
  }

  // Two files of at most 16 MiB, without the bytes that a terminal would obey.
  void expect_small_logs() {
    std::uintmax_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(files_ / "b" / "nodes")) {
      if (!entry.path().filename().string().starts_with("reward")) continue;
      bytes += entry.file_size();
      EXPECT_EQ(text_of(entry.path()).find('\x1b'), std::string::npos) << entry.path();
    }
    EXPECT_GT(bytes, 0u);
    EXPECT_LE(bytes, std::uintmax_t{34} << 20);
  }
};

}  // namespace troupe::test
