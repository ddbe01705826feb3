// Model folders that are written piece by piece: the bytes do not depend on the pieces.
#include "runtime/model/model_writer.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"
#include "tests/unit/runtime/store/joined_state.hpp"

#include <gtest/gtest.h>

namespace troupe::model {
namespace {

using troupe::test::joined_state;

// Pieces that end within a tensor, at the end of one and in the room between two; shards that hold
// one tensor, some and all.
TEST(ModelWriter, PiecesMakeTheFolderThatIsWrittenAtOnce) {
  for (const ModelSpec& spec : {learn::tiny_spec(), with_score_head(learn::tiny_spec(false))}) {
    ParamStore params(spec);
    randomise(params, 5, 0.2f);
    for (const StorageDtype dtype : {StorageDtype::kF32, StorageDtype::kBf16}) {
      for (const std::uint64_t shard_bytes : {1ull, 40'000ull, 4ull << 30}) {
        const troupe::test::TempFolder folder;
        ASSERT_TRUE(save_model(params, folder / "whole", dtype, {}, shard_bytes));
        const auto whole = joined_state(folder / "whole");
        for (const std::int64_t piece : {std::int64_t{1000}, params.layout().views[1].offset}) {
          const std::string name = "pieces-" + std::to_string(piece);
          auto writer = ModelWriter::begin(params.spec(), params.shared_layout(),
                                           {folder / name, dtype, {}, shard_bytes});
          ASSERT_TRUE(writer) << writer.error().message;
          for (std::int64_t at = 0; at < params.size(); at += piece)
            ASSERT_TRUE(writer->add({at, std::min(at + piece, params.size())}, params.data() + at));
          EXPECT_FALSE(std::filesystem::exists(folder / name));
          ASSERT_TRUE(writer->commit(true));
          EXPECT_TRUE(std::filesystem::exists(folder / name / store::kWrittenFiles));
          EXPECT_TRUE(joined_state(folder / name) == whole);
        }
      }
    }
  }
}

TEST(ModelWriter, AFolderThatIsNotCommittedLeavesNothing) {
  const troupe::test::TempFolder folder;
  ParamStore params(learn::tiny_spec());
  {
    auto writer = ModelWriter::begin(params.spec(), params.shared_layout(), {folder / "model"});
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->add({0, 100}, params.data()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace troupe::model
