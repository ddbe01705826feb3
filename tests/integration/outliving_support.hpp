// A run that is killed, and what outlives it: nodes, guests and servers that joined it by its
// address and a token that other runs have, too.
#pragma once

#include "tests/integration/join_support.hpp"

namespace troupe::test {

class Outliving : public Joining {
 protected:
  Outliving() : token_((files_ / "token").string()) {
    std::ofstream(token_) << std::string(64, 'a') << "\n";
    ::chmod(token_.c_str(), 0600);
  }

  // A run at the address of the first one, which finds it.
  Background run(const std::string& name, const Words& more) {
    Background started = head(name, Words{"--cluster.listen", address_, "--cluster.token_file",
                                          token_, "--cluster.head_wait_s", "1"} +
                                        more);
    if (address_ == "127.0.0.1:0") address_ = address_of(name);
    return started;
  }
  static Words endless() {
    return {"--train.max_steps", "100000", "--train.num_episodes", "100000",
            "--ckpt.save_steps", "0"};
  }
  Words joining(Words command, const Words& more) {
    return std::move(command) + Words{"--join", address_, "--token-file", token_} + more;
  }
  Background node(const Words& more = {}) {
    return start(joining({"node"}, Words{"--roles", "generator", "--name", "n"} + more), "node");
  }
  Background reward(const Words& more = {}) {
    return start(joining({"attach", "reward"}, Words{"--name", "other", "--rule", "regex",
                                                     "--pattern", "[a-z]", "--weight", "5"} +
                                                   more),
                 "reward");
  }
  Background server(const Words& more = {}) {
    return start(joining({"serve"},
                         Words{"--model", files_.model(), "--port", "0", "--threads", "1"} + more),
                 "server");
  }
  Background environment(const Words& more = {}) {
    std::ofstream(files_ / "environment.py")
        << "class Environment:\n"
           "    def reset(self, row, seed):\n"
           "        return {'text': 'say ' + str(row['prompt'])}\n"
           "    def step(self, message):\n"
           "        letters = sum(c.isalpha() for c in message['content'] or '')\n"
           "        return {'reward': letters / 7, 'done': True}\n";
    return start(
        joining({"attach", "environment"},
                Words{"--name", "e", "--python", (files_ / "environment.py").string()} + more),
        "environment");
  }

  // It ends with this status and says all of this.
  static void expect_end(Background& program, int status, const Words& parts) {
    EXPECT_EQ(program.wait(60).value_or(-1), status) << program.text();
    for (const std::string& part : parts)
      EXPECT_TRUE(program.says(part)) << "missing: " << part << "\n" << program.text();
  }
  // It belongs to run "a", and "b" is there.
  void expect_refused(Background& program, const std::string& who) {
    expect_end(program, 2,
               {"error: company/0: this is " + (files_ / "b").string() + " (run ",
                "and node/" + who, " belongs to " + (files_ / "a").string() + " (run ",
                "hint: attach it anew, or start it with --any-run"});
  }
  void expect_given_up(Background& program, const std::string& who) {
    expect_end(program, 5,
               {"for at most 1 s (--wait-s)", "there was no run for 1 s, so " + who + " ends"});
  }

  const std::string token_;
  std::string address_ = "127.0.0.1:0";
};

}  // namespace troupe::test
