// A tiny run that others join: the head, nodes, and what is asked of them. Used by the tests whose
// names begin with join_; every wait ends.
#pragma once

#include "apps/bench/ledger_check.hpp"
#include "tests/integration/two_hosts.hpp"

#include <cstdint>
#include <set>

namespace troupe::test {

using Words = std::vector<std::string>;

// TCP ports on which a process listens, in its own network.
inline std::set<std::uint16_t> ports_of(pid_t pid) {
  std::set<std::string> sockets;
  std::error_code error;
  const std::filesystem::path process = "/proc/" + std::to_string(pid);
  for (const auto& entry : std::filesystem::directory_iterator(process / "fd", error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::set<std::uint16_t> ports;
  for (const char* family : {"tcp", "tcp6"}) {
    std::ifstream table(process / "net" / family);
    for (std::string line; std::getline(table, line);) {
      std::istringstream in(line);
      std::string slot, local, remote, state, skipped, inode;
      in >> slot >> local >> remote >> state;
      for (int i = 0; i < 5; ++i)
        in >> skipped;
      in >> inode;
      if (state != "0A" || !sockets.contains(inode)) continue;
      ports.insert(
          static_cast<std::uint16_t>(std::stoul(local.substr(local.rfind(':') + 1), nullptr, 16)));
    }
  }
  return ports;
}

inline std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::istringstream in(text_of(task.path() / "children"));
    for (pid_t child; in >> child;)
      children.push_back(child);
  }
  return children;
}

// Files of a test and the commands on them.
class Joining : public testing::Test {
 protected:
  // `troupe train ppo` in the background.
  Background head(const std::string& run, const Words& more, int network = -1) {
    return start(files_.words(run) + more, run + ".head", network);
  }
  Background start(const Words& words, const std::string& log, int network = -1) {
    return Background(Words{troupe_program()} + words, files_ / (log + ".log"), network);
  }
  Ended ends(const Words& words, double limit_s = 20, int network = -1) {
    return troupe_ends(words, files_ / "command.log", limit_s, network);
  }

  // What RUN/company.json says, once it is there.
  nlohmann::json company_of(const std::string& run) {
    nlohmann::json company;
    within(20, [&] {
      company = nlohmann::json::parse(text_of(files_ / run / "company.json"), nullptr, false);
      return company.is_object();
    });
    return company.is_object() ? company : nlohmann::json::object();
  }
  std::string address_of(const std::string& run) {
    const auto company = company_of(run);
    return company.value("host", "?") + ":" + std::to_string(company.value("port", 0));
  }
  std::string token_of(const std::string& run) { return (files_ / run / "join_token").string(); }
  bool log_says(const std::string& run, const std::string& part) {
    return text_of(files_ / run / "troupe.log").find(part) != std::string::npos;
  }
  std::size_t updates_of(const std::string& run) { return metrics_of(files_ / run).size(); }

  void expect_clean_ledger(const std::string& run) {
    const auto check = bench::check_ledger(files_ / run);
    ASSERT_TRUE(check) << check.error().message;
    EXPECT_TRUE(check->clean()) << "lost " << check->lost() << ", doubled " << check->doubled();
  }
  // The same metrics, but for the one named, and the same trained model, bit for bit.
  void expect_same_bits(const std::string& run,
                        const std::string& other,
                        const std::string& but_for = "") {
    auto left = metrics_of(files_ / run), right = metrics_of(files_ / other);
    for (auto* rows : {&left, &right}) {
      for (auto& [step, row] : *rows)
        row.erase(but_for);
    }
    EXPECT_EQ(left.size(), right.size());
    for (const auto& [step, row] : left) {
      if (right.contains(step)) {
        EXPECT_EQ(row, right.at(step)) << "update " << step;
      }
    }
    const auto hash_left = hashes_of(last_checkpoint(run));
    EXPECT_FALSE(hash_left.empty());
    EXPECT_EQ(hash_left, hashes_of(last_checkpoint(other)));
  }
  std::filesystem::path last_checkpoint(const std::string& run) {
    std::filesystem::path last;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(files_ / run / "ckpt", error)) {
      if (entry.is_directory() && entry.path() > last) last = entry.path();
    }
    return last;
  }

  TinyRun files_;
};

}  // namespace troupe::test
