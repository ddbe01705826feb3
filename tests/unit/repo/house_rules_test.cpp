// The rules of the house, checked over the sources: which layer may include what, how long a file
// may be, and what may not appear. A failure names the file and line.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct SourceFile {
  std::string path;  // from the root, with '/'
  std::vector<std::string> lines;
};

fs::path root() {
  const char* folder = std::getenv("TROUPE_SOURCE_DIR");
  return folder != nullptr ? fs::path(folder) : fs::current_path();
}

bool starts_with(const std::string& text, const std::string& prefix) {
  return text.rfind(prefix, 0) == 0;
}

std::vector<SourceFile> sources(const std::vector<std::string>& rooms) {
  std::vector<SourceFile> files;
  for (const auto& room : rooms) {
    if (!fs::exists(root() / room)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root() / room)) {
      const auto extension = entry.path().extension();
      if (extension != ".hpp" && extension != ".cpp" && extension != ".h") continue;
      SourceFile file{fs::relative(entry.path(), root()).generic_string(), {}};
      if (file.path.find("/target/") != std::string::npos) continue;
      if (starts_with(file.path, "runtime/cmake/")) continue;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);)
        file.lines.push_back(line);
      files.push_back(std::move(file));
    }
  }
  return files;
}

const std::vector<std::string> kCode = {"runtime", "kernels", "actors/", "apps"};

std::string place(const SourceFile& file, std::size_t line) {
  return file.path + ":" + std::to_string(line + 1);
}

// The layer of a path: "runtime/core", "kernels", "actors/data", "apps/session".
std::string layer_of(const std::string& path) {
  for (const std::string floor : {"runtime/", "actors/", "apps/"})
    if (starts_with(path, floor)) return path.substr(0, path.find('/', floor.size()));
  return path.substr(0, path.find('/'));
}

// What each layer may include besides itself and runtime/core; "runtime/" is any room of it. Rooms
// of actors may use kBelowRoles as well.
const std::set<std::string> kBelowRoles = {"runtime/", "kernels", "schema"};
const std::map<std::string, std::set<std::string>> kMayUse = {
    {"runtime/core", {}},
    {"runtime/config", {}},
    {"kernels", {}},
    {"runtime/async", {}},
    {"runtime/wire", {}},
    {"runtime/parse", {}},
    {"runtime/names", {"runtime/parse"}},
    {"runtime/store", {"runtime/config", "runtime/parse"}},
    {"runtime/observe", {"runtime/store"}},
    {"runtime/text", {"runtime/parse"}},
    {"runtime/tables", {}},
    {"runtime/data",
     {"runtime/config", "runtime/names", "runtime/tables", "runtime/text", "runtime/parse"}},
    {"runtime/cluster", {"runtime/async", "runtime/wire", "runtime/net"}},
    {"runtime/net", {"runtime/config", "runtime/async"}},
    {"runtime/collective", {"runtime/net", "kernels"}},
    {"runtime/model",
     {"runtime/config", "kernels", "runtime/names", "runtime/store", "runtime/parse"}},
    {"runtime/plan", {"runtime/model", "kernels"}},
    {"runtime/experience", {}},
    {"runtime/engine",
     {"runtime/config", "runtime/experience", "runtime/model", "runtime/weights", "kernels",
      "runtime/store"}},
    {"runtime/learn",
     {"runtime/config", "runtime/experience", "runtime/data", "runtime/model", "runtime/collective",
      "kernels", "runtime/store"}},
    {"runtime/weights", {"runtime/model", "runtime/async", "runtime/net", "runtime/collective"}},
    {"runtime/guide", {"runtime/engine", "runtime/experience", "runtime/parse"}},
    {"runtime/dialects",
     {"runtime/async", "runtime/engine", "runtime/experience", "runtime/guide", "runtime/net",
      "runtime/parse", "runtime/store", "runtime/text"}},
    {"runtime/sessions",
     {"runtime/async", "runtime/dialects", "runtime/engine", "runtime/experience", "runtime/net",
      "runtime/parse", "runtime/store", "runtime/text"}},
    {"actors/protocol", {}},
    {"actors/formula", {"actors/protocol"}},
    {"actors/data", {"actors/protocol", "actors/formula"}},
    {"actors/controller", {"actors/protocol", "actors/formula", "actors/data"}},
    {"actors/company", {"actors/protocol", "actors/data", "actors/controller"}},
    {"actors/supervised", {"actors/protocol", "actors/controller"}},
    {"actors/reward", {"actors/protocol"}},
    {"actors/environment", {"actors/protocol", "actors/reward"}},
    {"actors/policy", {"actors/protocol", "actors/reward"}},
    {"actors/reference", {"actors/protocol", "actors/reward"}},
    {"actors/critic", {"actors/protocol"}},
    {"actors/gang", {"actors/protocol"}},
    {"actors/generator", {"actors/protocol"}},
    {"actors/node", {"actors/protocol"}},
    {"apps/cli", {"runtime/", "kernels", "actors/"}},
    {"apps/side", {"runtime/"}},
    {"apps/loggers", {"runtime/", "apps/side"}},
    {"apps/hub", {"runtime/", "apps/cli", "apps/side"}},
    {"apps/session", {"runtime/", "kernels", "actors/", "apps/cli", "apps/loggers"}},
    {"apps/serving", {"runtime/", "kernels", "actors/", "apps/cli", "apps/session"}},
    {"apps/bench", {"runtime/", "kernels", "actors/", "apps/cli", "apps/session"}},
    {"apps/report", {"runtime/", "kernels", "actors/", "apps/cli", "apps/session"}},
    {"apps/pipeline", {"runtime/", "apps/cli"}},
    {"apps/troupe", {"runtime/", "kernels", "actors/", "apps/"}},
};

// What each folder of runtime/learn may include besides itself and what lies at its top.
const std::map<std::string, std::set<std::string>> kLearnMayUse = {
    {"torch", {}},
    {"lanes", {}},
    {"ranks", {"lanes"}},
    {"state", {"ranks"}},
    {"optim", {"ranks", "state"}},
    {"model", {"torch", "lanes", "ranks", "state", "optim"}},
    {"loss", {"torch"}},
    {"advantage", {"loss"}},
    {"rl", {"torch", "lanes", "ranks", "state", "optim", "model", "loss", "advantage"}},
    {"supervised", {"torch", "lanes", "ranks", "state", "model", "advantage"}},
};

bool may_use(const std::set<std::string>& rooms, const std::string& used) {
  if (rooms.contains(used)) return true;
  const auto slash = used.find('/');  // "runtime/" stands for all of its rooms
  return slash != used.npos && rooms.contains(used.substr(0, slash + 1));
}

// The parts of a name: kGatewayPending_max is k, gateway, pending, max.
std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (c == '_' || c == '/' || c == '.' || upper) parts.emplace_back();
    if (c != '_' && c != '/' && c != '.')
      parts.back() += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return parts;
}

}  // namespace

TEST(HouseRules, LayersUseOnlyThoseBelow) {
  const std::regex include(
      R"re(^\s*#include "((runtime/[a-z]+|kernels|actors/[a-z]+|apps/[a-z]+)/[^"]*)")re");
  for (const auto& file : sources(kCode)) {
    const auto rule = kMayUse.find(layer_of(file.path));
    ASSERT_NE(rule, kMayUse.end()) << file.path << ": a layer without a rule";
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(file.lines[i], match, include)) continue;
      const std::string used = layer_of(match[1].str());
      const bool below = starts_with(rule->first, "actors/") && may_use(kBelowRoles, used);
      EXPECT_TRUE(used == rule->first || used == "runtime/core" || below ||
                  may_use(rule->second, used))
          << place(file, i) << ": " << rule->first << " may not use " << used;
    }
  }
}

TEST(HouseRules, FoldersOfLearnUseOnlyThoseAbove) {
  const std::regex folder(R"re(^(?:\s*#include ")?runtime/learn/([a-z]+)/)re");
  for (const auto& file : sources({"runtime/learn"})) {
    std::smatch match;
    if (!std::regex_search(file.path, match, folder)) continue;
    const std::string own = match[1].str();
    ASSERT_TRUE(kLearnMayUse.contains(own)) << file.path << ": a folder without a rule";
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (!std::regex_search(file.lines[i], match, folder)) continue;
      EXPECT_TRUE(match[1] == own || kLearnMayUse.at(own).contains(match[1].str()))
          << place(file, i) << ": " << own << " may not use " << match[1];
    }
  }
}

// The rows of a room's keys are read in runtime/config, which knows no header of the room.
TEST(HouseRules, RowsOfKeysIncludeOnlyRows) {
  const std::regex include(R"re(^\s*#include "([^"]*)")re");
  std::size_t files = 0;
  for (const char* floor : {"runtime", "actors"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root() / floor)) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with("keys.def")) continue;
      ++files;
      std::ifstream in(entry.path());
      for (std::string line; std::getline(in, line);) {
        std::smatch match;
        if (!std::regex_search(line, match, include)) continue;
        EXPECT_TRUE(match[1].str().ends_with("_keys.def")) << name << ": " << line;
      }
    }
  }
  EXPECT_GE(files, 18u);
}

// What a room defines stands in the namespace of the room: troupe::model, troupe::actors::data. The
// messages and what all roles share are troupe::actors itself. Others' may be opened to declare a
// name of theirs, or where a template asks for it.
TEST(HouseRules, RoomsHaveNamespacesOfTheirOwn) {
  const std::regex opened(R"(^namespace (troupe[a-z_:]*) \{)");
  const std::map<std::string, std::string> others = {{"actors/protocol", "troupe::actors"},
                                                     {"apps/troupe", "troupe::app"}};
  const std::set<std::string> guests = {
      "actors/protocol/codec.cpp",     "apps/session/session_news.hpp",
      "runtime/core/result.hpp",       "runtime/learn/optim/element_optimizer.hpp",
      "runtime/learn/ranks/ranks.hpp", "runtime/model/peft_targets.hpp"};
  for (const auto& file : sources(kCode)) {
    const std::string layer = layer_of(file.path), room = layer.substr(layer.find('/') + 1);
    std::string own = "troupe::" + (starts_with(layer, "actors/") ? "actors::" + room : room);
    if (const auto other = others.find(layer); other != others.end()) own = other->second;
    if (guests.contains(file.path)) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(file.lines[i], match, opened)) continue;
      EXPECT_TRUE(starts_with(match[1].str() + "::", own + "::"))
          << place(file, i) << ": " << layer << " defines its names in " << own;
    }
  }
}

TEST(HouseRules, CoreIncludesNoThirdParty) {
  const std::regex angled(R"(^\s*#include <([^>]+)>)");
  const std::regex foreign(R"(/|nlohmann|yaml|spdlog|CLI|boost|caf|torch|ATen|capnp|kj)");
  for (const auto& file : sources({"runtime/core", "kernels"})) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(file.lines[i], match, angled)) continue;
      const std::string header = match[1].str();
      if (starts_with(header, "sys/")) continue;
      EXPECT_FALSE(std::regex_search(header, foreign)) << place(file, i) << ": <" << header << ">";
    }
  }
}

TEST(HouseRules, LibrariesStayInTheirRooms) {
  const std::regex caf(R"(#include <caf/)");
  const std::regex torch(R"(#include <(torch|ATen|c10)/)");
  const std::regex asio(R"(#include <boost/(asio|beast))");
  const std::regex spdlog(R"(#include <spdlog/)");
  std::set<std::string> with_torch, with_spdlog;
  for (const auto& file : sources(kCode)) {
    const std::string layer = layer_of(file.path);
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (std::regex_search(line, caf)) {
        EXPECT_TRUE(starts_with(file.path, "runtime/cluster/caf/")) << place(file, i);
      }
      if (std::regex_search(line, asio)) {
        EXPECT_TRUE(layer == "runtime/async" || layer == "runtime/net" ||
                    layer == "runtime/cluster")
            << place(file, i) << ": Asio belongs in async, net and cluster";
      }
      if (std::regex_search(line, torch)) {
        with_torch.insert(file.path);
        EXPECT_TRUE(layer == "runtime/learn" || starts_with(file.path, "runtime/model/train_"))
            << place(file, i) << ": LibTorch belongs in what libtroupe_learn.so is made of";
      }
      if (std::regex_search(line, spdlog)) with_spdlog.insert(file.path);
    }
  }
  EXPECT_LE(with_torch.size(), 60u) << "LibTorch headers cost ten CPU seconds a source";
  EXPECT_LE(with_spdlog.size(), 1u) << "spdlog belongs in one source of runtime/observe";
}

TEST(HouseRules, FilesHoldOneIdea) {
  for (const auto& file : sources(kCode)) {
    const std::size_t limit = file.path.ends_with(".cpp") ? 450 : 250;
    EXPECT_LE(file.lines.size(), limit) << file.path;
  }
}

// A source is what its header says; one without a header says it itself.
TEST(HouseRules, EveryFileSaysWhatItIsFor) {
  for (const auto& file : sources(kCode)) {
    ASSERT_FALSE(file.lines.empty()) << file.path;
    const std::string stem = file.path.substr(0, file.path.rfind('.'));
    if (file.path.ends_with(".cpp") && fs::exists(root() / (stem + ".hpp"))) continue;
    EXPECT_TRUE(starts_with(file.lines[0], "//") || starts_with(file.lines[0], "/*")) << file.path;
  }
}

TEST(HouseRules, NoUnfinishedMarksAndNoSleepsInTests) {
  const std::regex marks(std::string("\\b(TO") + "DO|FIX" + "ME|X" + "XX)\\b");
  // Sleeping on the virtual clock (async::sleep_for over a simulator's timers) is no sleep.
  const std::regex sleeps(std::string("this_thread::sle") + "ep|usle" + "ep\\(|nanosle" + "ep\\(");
  auto all = kCode;
  all.push_back("tests");
  for (const auto& file : sources(all)) {
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      EXPECT_FALSE(std::regex_search(file.lines[i], marks)) << place(file, i);
      if (starts_with(file.path, "tests/")) {
        EXPECT_FALSE(std::regex_search(file.lines[i], sleeps))
            << place(file, i) << ": wait for the event instead";
      }
    }
  }
}

// So that a wall clock that jumps moves no deadline, no lease and no decision (ADR 0016).
TEST(HouseRules, NothingInTheCompanyReadsTheWallClock) {
  const std::regex wall(
      R"(system_clock|\btime\(nullptr\)|\btime\(NULL\)|CLOCK_REALTIME|gettimeofday)");
  for (const auto& file :
       sources({"actors", "runtime/async", "runtime/cluster", "runtime/collective",
                "runtime/engine", "runtime/experience", "runtime/learn", "runtime/weights"})) {
    for (std::size_t i = 0; i < file.lines.size(); ++i)
      EXPECT_FALSE(std::regex_search(file.lines[i], wall)) << place(file, i);
  }
}

// g++ 12 awaits it whatever stands before (ADR 0001).
TEST(HouseRules, NoLoopAwaitsBehindAnAndOrAnOr) {
  const std::regex awaits("\\b(while|for) \\(.*(&&|\\|\\|).*co_await");
  EXPECT_TRUE(std::regex_search("  while (!urgent && co_await wake.wait(end)) {", awaits));
  auto all = kCode;
  all.push_back("tests");
  for (const auto& file : sources(all)) {
    std::string before;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const bool found = std::regex_search(before + file.lines[i], awaits);
      EXPECT_FALSE(found && !starts_with(file.path, "tests/unit/repo")) << place(file, i);
      const bool goes_on = file.lines[i].ends_with("&&") || file.lines[i].ends_with("||");
      before = goes_on ? file.lines[i] : "";
    }
  }
}

TEST(HouseRules, EverySchemaHasAnId) {
  for (const auto& entry : fs::directory_iterator(root() / "schema")) {
    if (entry.path().extension() != ".capnp") continue;
    std::ifstream in(entry.path());
    bool found = false;
    for (std::string line; std::getline(in, line);)
      found = found || starts_with(line, "@0x");
    EXPECT_TRUE(found) << entry.path();
  }
}

// Words that were given up for the field's own, as parts of names of files,
// types, functions and members.
TEST(HouseRules, GivenUpWordsStayAway) {
  const std::set<std::string> words = {"cast",    "door", "doors", "splice",
                                       "spliced", "play", "desk",  "workshop"};
  const std::regex name("[A-Za-z_][A-Za-z0-9_]*"), cast("[a-z_]+_cast"),
      quoted(R"re("(\\.|[^"\\])*")re");
  for (const auto& file : sources(kCode)) {
    for (const std::string& part : parts_of(file.path))
      EXPECT_FALSE(words.contains(part)) << file.path;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const std::string& line = file.lines[i];
      if (line.find("R\"") != line.npos || line.find("#include") != line.npos) continue;
      std::string code = std::regex_replace(line, quoted, "");
      code = code.substr(0, code.find("//"));
      for (std::sregex_iterator it(code.begin(), code.end(), name), end; it != end; ++it) {
        if (std::regex_match(it->str(), cast)) continue;
        for (const std::string& part : parts_of(it->str()))
          EXPECT_FALSE(words.contains(part)) << place(file, i) << ": " << it->str();
      }
    }
  }
}
