// What the fault campaign needs of C++: `fault_tool make FOLDER` writes the tiny model, its
// tokenizer, data and configuration; `fault_tool check RUN` prints what the ledger says as one line
// of JSON. Run by tests/faults/campaign.py.
#include "apps/bench/ledger_check.hpp"
#include "tests/integration/train_support.hpp"

#include <cstdio>
#include <cstring>

namespace {

namespace fs = std::filesystem;

int make(const fs::path& folder) {
  const troupe::test::TinyRun files;
  fs::create_directories(folder);
  fs::copy(files.model(), folder / "model", fs::copy_options::recursive);
  fs::copy(files / "train.jsonl", folder / "train.jsonl");
  fs::copy(files / "tiny.yaml", folder / "tiny.yaml");
  return 0;
}

int check(const fs::path& run) {
  const auto checked = troupe::bench::check_ledger(run);
  nlohmann::json line;
  if (!checked) {
    line["error"] = checked.error().message;
  } else {
    line = {{"updates", checked->updates},           {"groups", checked->groups},
            {"samples", checked->samples},           {"lost", checked->lost()},
            {"doubled", checked->doubled()},         {"wrong_scores", checked->wrong_scores},
            {"unclear_sets", checked->unclear_sets}, {"clean", checked->clean()}};
  }
  std::printf("%s\n", line.dump().c_str());
  return checked ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "make") == 0) return make(argv[2]);
  if (argc == 3 && std::strcmp(argv[1], "check") == 0) return check(argv[2]);
  std::fprintf(stderr, "usage: fault_tool make FOLDER | check RUN\n");
  return 2;
}
