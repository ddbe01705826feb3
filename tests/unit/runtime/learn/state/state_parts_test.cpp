// States that ranks write in parts: read by any number of ranks at any stage, bit for bit; what is
// damaged is named; a rank that cannot write makes the save fail on all alike; at stage 3 no rank
// has the whole model while it saves or loads.
#include "runtime/learn/state/state_parts.hpp"

#include "tests/unit/runtime/learn/ranks/rank_runs.hpp"
#include "tests/unit/runtime/learn/ranks/resident_pages.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <set>

namespace troupe::learn {
namespace {

namespace fs = std::filesystem;
using troupe::test::FilesByName;
using troupe::test::joined_state;

TrainerSettings parted(const Ranks& ranks) {
  TrainerSettings settings;
  settings.optim.adam.lr = 1e-2;
  settings.optim.lanes = 8;
  settings.optim.ranks = ranks;
  settings.batch.micro_tokens_max = 64;
  settings.total_steps = 12;
  return settings;
}

std::unique_ptr<PolicyTrainer> make_trainer(const TrainerSettings& settings,
                                            core::TeamRunner& team,
                                            const model::ModelSpec& spec = tiny_spec()) {
  auto made = PolicyTrainer::create(test::start_weights(spec), settings, team);
  EXPECT_TRUE(made) << made.error().message;
  return std::move(made).value();
}

struct Gang {
  int size = 1, stage = 0;
  std::string name() const { return std::to_string(size) + " at stage " + std::to_string(stage); }
};

// Runs `body` with a trainer, on ranks or, if the size is 1, alone.
void with_trainers(const Gang& gang,
                   const TrainerSettings& settings,
                   const std::function<void(PolicyTrainer&)>& body) {
  const auto run = [&](const Ranks& ranks) {
    core::SerialTeam team;
    TrainerSettings own = settings;
    own.optim.ranks = ranks;
    body(*make_trainer(own, team));
  };
  if (gang.size == 1) return run({});
  test::run_ranks(gang.size, [&](collective::Collectives& ranks) { run({&ranks, gang.stage}); });
}

void train_once(PolicyTrainer& trainer, std::uint64_t update) {
  ASSERT_TRUE(trainer.gather());
  ASSERT_TRUE(trainer.update(random_groups(*trainer.packed(), update, 6, 4)));
}

void load(PolicyTrainer& trainer, const fs::path& folder) {
  const auto loaded = trainer.load_state(folder);
  ASSERT_TRUE(loaded) << loaded.error().message;
}

void save(PolicyTrainer& trainer, const fs::path& folder) {
  const auto saved = trainer.save_state(folder);
  ASSERT_TRUE(saved) << saved.error().message;
}

// Four ranks, then two at another stage, then eight, then three, then two, then one; what an
// earlier save has left in the folder is no part of a later one.
TEST(StateParts, AStateGoesOnWithAnyNumberOfRanks) {
  const troupe::test::TempFolder straight, changing;
  TrainerSettings settings = parted({});
  settings.ema_beta = 0.9;
  const Gang gangs[] = {{4, 2}, {2, 0}, {8, 1}, {3, 3}, {2, 3}, {1, 0}};
  std::uint64_t update = 0;
  for (const Gang& gang : gangs) {
    SCOPED_TRACE(gang.name());
    with_trainers(gang, settings, [&](PolicyTrainer& trainer) {
      if (update > 0) load(trainer, changing.path());
      train_once(trainer, update);
      save(trainer, changing.path());
    });
    with_trainers({}, settings, [&](PolicyTrainer& trainer) {
      if (update > 0) load(trainer, straight.path());
      train_once(trainer, update);
      save(trainer, straight.path());
    });
    ++update;
    EXPECT_TRUE(joined_state(changing.path()) == joined_state(straight.path()));
    EXPECT_EQ(fs::exists(changing / "ranks.json"), gang.stage > 0);
    EXPECT_EQ(fs::exists(changing / "adam_m.safetensors"), gang.stage == 0);
  }
}

// What each of some gangs writes, each of some gangs reads; adapters have fewer blocks than there
// are ranks, frozen tensors have no moments.
TEST(StateParts, AnyGangReadsWhatAnyGangWrote) {
  TrainerSettings whole = parted({}), adapters = whole, frozen = whole;
  adapters.optim.trained.lora.rank = 4;
  frozen.optim.trained.freeze = {"mlp", "layers.0.input_layernorm"};
  for (const TrainerSettings& settings : {whole, adapters, frozen}) {
    const troupe::test::TempFolder first;
    with_trainers({}, settings, [&](PolicyTrainer& trainer) {
      train_once(trainer, 0);
      save(trainer, first.path());
    });
    const FilesByName expected = joined_state(first.path());
    for (const Gang& writer : {Gang{1, 0}, Gang{2, 3}, Gang{5, 1}, Gang{8, 2}}) {
      const troupe::test::TempFolder written;
      with_trainers(writer, settings, [&](PolicyTrainer& trainer) {
        load(trainer, first.path());
        save(trainer, written.path());
      });
      ASSERT_TRUE(joined_state(written.path()) == expected) << writer.name();
      for (const Gang& reader : {Gang{1, 0}, Gang{3, 3}, Gang{4, 1}}) {
        const troupe::test::TempFolder again;
        with_trainers(reader, settings, [&](PolicyTrainer& trainer) {
          load(trainer, written.path());
          save(trainer, again.path());
        });
        ASSERT_TRUE(joined_state(again.path()) == expected)
            << writer.name() << ", then " << reader.name();
      }
    }
  }
}

class DamagedParts : public testing::Test {
 protected:
  DamagedParts() { write(whole_.path(), 0); }

  static void write(const fs::path& folder, std::uint64_t updates) {
    with_trainers({3, 1}, parted({}), [&](PolicyTrainer& trainer) {
      for (std::uint64_t update = 0; update < updates; ++update)
        train_once(trainer, update);
      save(trainer, folder);
    });
  }

  // Damages a copy of the state. A trainer refuses it, names `file` and keeps its own weights.
  void expect_refused(const char* what,
                      const std::string& file,
                      const std::function<void(const fs::path&)>& damage,
                      const std::string& advice = "--resume FOLDER") {
    SCOPED_TRACE(what);
    const troupe::test::TempFolder copy;
    fs::copy(whole_.path(), copy.path(), fs::copy_options::recursive);
    damage(copy.path());
    core::SerialTeam team;
    const auto trainer = make_trainer(parted({}), team, spec_);
    const auto before = test::all_weights(trainer->master());
    const auto loaded = trainer->load_state(copy.path());
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, core::ErrorCode::kData);
    EXPECT_NE(loaded.error().message.find((copy / file).string()), std::string::npos)
        << loaded.error().message;
    EXPECT_NE(loaded.error().message.find(advice), std::string::npos) << loaded.error().message;
    EXPECT_TRUE(test::all_weights(trainer->master()) == before);
  }

  troupe::test::TempFolder whole_;
  model::ModelSpec spec_ = tiny_spec();
};

TEST_F(DamagedParts, AreNamed) {
  const std::string one = "rank-1-of-3.safetensors", two = "rank-2-of-3.safetensors";
  expect_refused("truncated", one, [&](const fs::path& folder) {
    fs::resize_file(folder / one, fs::file_size(folder / one) - 4);
  });
  expect_refused("cut in the header", two,
                 [&](const fs::path& folder) { fs::resize_file(folder / two, 40); });
  expect_refused("missing", two, [&](const fs::path& folder) { fs::remove(folder / two); });
  expect_refused("swapped", one, [&](const fs::path& folder) {
    fs::rename(folder / one, folder / "aside");
    fs::rename(folder / two, folder / one);
    fs::rename(folder / "aside", folder / two);
  });
  expect_refused("doubled", two, [&](const fs::path& folder) {
    fs::copy_file(folder / one, folder / two, fs::copy_options::overwrite_existing);
  });
  expect_refused("no description", "ranks.json",
                 [](const fs::path& folder) { fs::remove(folder / "ranks.json"); });
  expect_refused("torn description", "ranks.json",
                 [](const fs::path& folder) { fs::resize_file(folder / "ranks.json", 100); });
  expect_refused("an empty object", "ranks.json", [](const fs::path& folder) {
    troupe::test::put_file(folder / "ranks.json", "{}");
  });
}

TEST_F(DamagedParts, OfAnotherStateAreNamed) {
  const troupe::test::TempFolder later;
  write(later.path(), 1);
  const std::string one = "rank-1-of-3.safetensors";
  expect_refused("of another step", one, [&](const fs::path& folder) {
    fs::copy_file(later / one, folder / one, fs::copy_options::overwrite_existing);
  });
  expect_refused("of more ranks", "ranks.json", [&](const fs::path& folder) {
    std::string counts = troupe::test::read_file(folder / "trainer_state.json");
    counts.replace(counts.find("\"ranks\": 3"), 10, "\"ranks\": 4");
    troupe::test::put_file(folder / "trainer_state.json", counts);
  });
  expect_refused(
      "no number of ranks", "trainer_state.json",
      [&](const fs::path& folder) {
        std::string counts = troupe::test::read_file(folder / "trainer_state.json");
        counts.replace(counts.find("\"ranks\""), 7, "\"tanks\"");
        troupe::test::put_file(folder / "trainer_state.json", counts);
      },
      "'ranks'");
  spec_ = tiny_spec(false);
  expect_refused(
      "of another model", "ranks.json", [](const fs::path&) {}, "lm_head");
}

// Runs a save that has to fail, each rank in the folder that `folder_of` says; returns the error,
// which is the same on all ranks, and all go on.
core::Error failed_save(int stage, const std::function<fs::path(int rank)>& folder_of) {
  std::mutex mutex;
  std::set<std::pair<core::ErrorCode, std::string>> errors;
  test::run_ranks(3, [&](collective::Collectives& gang) {
    core::SerialTeam team;
    const auto trainer = make_trainer(parted({&gang, stage}), team);
    const auto saved = trainer->save_state(folder_of(gang.rank()));
    ASSERT_FALSE(saved);
    {
      const std::scoped_lock lock(mutex);
      errors.emplace(saved.error().code, saved.error().message);
    }
    train_once(*trainer, 0);
  });
  EXPECT_EQ(errors.size(), 1u);
  return errors.empty() ? core::Error{}
                        : core::Error{errors.begin()->first, errors.begin()->second};
}

void expect_words(const core::Error& error, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(error.message.find(word), std::string::npos) << error.message;
}

TEST(StateParts, AFolderThatCannotBeWrittenIsReportedByAll) {
  for (int stage = 0; stage <= kZeroStage_max; ++stage)
    expect_words(failed_save(stage, [](int) { return "/nowhere/to/be/found"; }), {"/nowhere"});
}

TEST(StateParts, AFullDiskOfOneRankIsReportedByAll) {
  const troupe::test::TempFolder folder;
  fs::create_symlink("/dev/full", folder / "rank-2-of-3.safetensors");
  const auto error = failed_save(2, [&](int) { return folder.path(); });
  EXPECT_EQ(error.code, core::ErrorCode::kNoRoom);
  expect_words(error, {"rank 2 on ", "rank-2-of-3.safetensors", "No space left"});
  EXPECT_FALSE(fs::exists(folder / "trainer_state.json"));
}

// As on a host that does not mount the folder, and on one that has another of the same name.
TEST(StateParts, AFolderThatHostsDoNotShareIsNoticed) {
  const troupe::test::TempFolder first, shared, other;
  const auto missing =
      failed_save(3, [&](int rank) { return rank == 1 ? fs::path("/nowhere") : first.path(); });
  expect_words(missing, {"rank 1 on ", "/nowhere", "--run.path"});
  const auto elsewhere =
      failed_save(3, [&](int rank) { return rank == 2 ? other.path() : shared.path(); });
  expect_words(elsewhere, {"rank 0 on ", "does not see", (shared / "rank-2-of-3").string(),
                           "rank 2 on ", "--run.path"});
}

// At stage 3: neither saving nor loading makes more of the model present than a rank's blocks.
TEST(StateParts, NoRankHasTheWholeModelWhileItSavesOrLoads) {
  model::ModelSpec spec = tiny_spec();
  spec.layers = 4;
  spec.hidden = 192;
  spec.head_dim = 48;
  spec.ffn = 512;
  const troupe::test::TempFolder folder;
  TrainerSettings settings = parted({});
  settings.optim.trained.seed = 3;
  test::run_ranks(3, [&](collective::Collectives& gang) {
    core::SerialTeam team;
    TrainerSettings own = settings;
    own.optim.ranks = {&gang, 3};
    const auto trainer = make_trainer(own, team, spec);
    const model::ParamStore& master = trainer->master();
    const auto bytes = static_cast<std::size_t>(master.size()) * sizeof(float);
    const auto pages = [&] { return test::resident_pages(master.data(), bytes); };
    const std::int64_t all = pages();
    train_once(*trainer, 0);
    const std::int64_t divided = pages();
    EXPECT_LE(divided, all * 4 / 10);
    save(*trainer, folder.path());
    EXPECT_EQ(pages(), divided);
    const auto saved = trainer->save_model(folder / "model", {});
    EXPECT_TRUE(saved) << saved.error().message;
    EXPECT_EQ(pages(), divided);
    ASSERT_TRUE(trainer->gather());
    const auto weights = test::all_weights(master);
    load(*trainer, folder.path());
    EXPECT_EQ(pages(), divided);
    ASSERT_TRUE(trainer->gather());
    EXPECT_TRUE(test::all_weights(master) == weights);
  });
}

}  // namespace
}  // namespace troupe::learn
