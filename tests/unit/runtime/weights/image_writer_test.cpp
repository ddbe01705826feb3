// The image that a publisher writes, bucket by bucket, has the bytes of the panels that
// PackedWeights packs, in every storage type and family; and each type reaches its engines.
#include "runtime/weights/image_writer.hpp"

#include "runtime/core/crc32c.hpp"
#include "tests/unit/runtime/model/test_models.hpp"
#include "tests/unit/runtime/weights/rank_sources.hpp"

#include <gtest/gtest.h>

#include <future>

namespace troupe::weights {
namespace {

using kernels::PanelDtype;

// What one of `of` sources writes has the bytes of the panels, from whole weights and from parts.
void expect_share(const model::ParamStore& params,
                  const model::PackedWeights& packed,
                  Share share,
                  core::TeamRunner& team) {
  ImageWriter writer(params.spec(), packed.dtype(), core::host_memory(), share, kBucket_bytes_min);
  const SnapshotShape& shape = writer.shape();
  ASSERT_EQ(static_cast<std::int64_t>(shape.image_bytes), packed.image_bytes());
  const auto bytes = static_cast<std::int64_t>(shape.image_bytes_of(share));
  const auto expect_buckets = [&](const char* got, const std::vector<std::uint32_t>& table) {
    for (std::uint32_t i = 0; i < shape.buckets; ++i) {
      if (!share.has(i)) {
        EXPECT_EQ(table[i], 0u) << i;
        continue;
      }
      const auto wanted = shape.bucket(packed.image(), i), own = shape.bucket(got, i, share);
      EXPECT_EQ(std::memcmp(own.data(), wanted.data(), wanted.size()), 0) << i;
      EXPECT_EQ(table[i], core::crc32c(wanted.data(), wanted.size())) << i;
    }
  };
  std::vector<std::uint32_t> table(shape.buckets);
  core::Buffer<char> whole(std::max<std::int64_t>(bytes, 1)), in_parts(whole.size());
  writer.write(team, params, whole.data(), table);
  expect_buckets(whole.data(), table);
  std::fill(table.begin(), table.end(), 0u);
  const auto shown = parts_of(params)([&](core::Range part, const float* flat) {
    writer.write_part(team, flat, part, in_parts.data());
  });
  ASSERT_TRUE(shown);
  writer.finish(team, in_parts.data(), table);
  expect_buckets(in_parts.data(), table);
}

void expect_image(const model::ModelSpec& spec, PanelDtype dtype, core::TeamRunner& team) {
  model::ParamStore params(spec);
  model::randomise(params, 5, 0.3f);
  model::PackedWeights packed(spec, dtype);
  packed.fill({}, params, 1);
  std::uint64_t shared = 0;
  for (std::uint32_t number = 0; number < 3; ++number) {
    expect_share(params, packed, {number, 3}, team);
    shared += SnapshotShape(spec, dtype, kBucket_bytes_min).image_bytes_of({number, 3});
  }
  EXPECT_EQ(static_cast<std::int64_t>(shared), packed.image_bytes());
  expect_share(params, packed, {}, team);
  expect_share(params, packed, {3, 3}, team);  // nothing
}

TEST(ImageWriter, HasTheBytesOfThePanels) {
  model::ModelSpec large = model::qwen_spec();  // several units and buckets a matrix
  large.ffn = 700;
  large.vocab = 5003;
  core::SerialTeam one;
  model::PairTeam two;
  for (const model::ModelSpec& spec :
       {large, model::tiny_spec(), model::phi3_spec(), model::gemma_spec(), model::mixtral_spec(),
        model::qwen_moe_spec()}) {
    for (const PanelDtype dtype :
         {PanelDtype::kF32, PanelDtype::kBf16, PanelDtype::kBf16Compute, PanelDtype::kInt8}) {
      expect_image(spec, dtype, one);
      expect_image(spec, dtype, two);
    }
  }
}

TEST(ImageWriter, Bf16IsHalfOfItWhereMatricesAre) {
  const SnapshotShape f32(wide(), PanelDtype::kF32), bf16(wide(), PanelDtype::kBf16);
  const model::ModelSpec spec = wide();
  const auto unpacked = static_cast<std::uint64_t>(4 * spec.vocab * spec.hidden);  // the embedding
  EXPECT_LT(bf16.image_bytes - unpacked, (f32.image_bytes - unpacked) / 2 + 4096);
}

// The engines of a bf16 run: what comes has the bits of the master packed as bf16.
TEST(ImageWriter, TheRunsTypeComesByEveryWay) {
  for (const PanelDtype dtype : {PanelDtype::kBf16, PanelDtype::kBf16Compute, PanelDtype::kInt8}) {
    PublisherOptions options;
    options.image = dtype;
    Source source(tiny(), options);
    const WeightLocation at = source.publish(2);
    RemoteWeightSubscriber subscriber(tiny(), dtype);
    for (const WeightLocation& way : {only_memory(at), only_tcp(at)}) {
      const auto got = receive(subscriber, 2, way);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_EQ((*got)->dtype(), dtype);
      EXPECT_TRUE(holds_version(**got, 2));
    }
    EXPECT_EQ(source.publisher->counters().snapshots, 1u) << "one type";
  }
}

// The trainer's own panels are copied in place of packing its master weights again; those of
// another type are packed all the same.
TEST(ImageWriter, PanelsOfTheTrainerAreCopied) {
  PublisherOptions options;
  options.image = PanelDtype::kBf16;
  Source source(wide(), options);
  auto panels = std::make_shared<model::PackedWeights>(wide(), PanelDtype::kBf16Compute);
  int packings = 0;
  const auto publish = [&](core::Version version) {
    write_version(source.params, version);
    Offer offer;
    offer.version = version;
    offer.master = &source.params;
    offer.packed = [&] {
      ++packings;
      panels->fill({}, source.params, version);
      return panels;
    };
    return *source.publisher->publish(offer);
  };
  const WeightLocation at = publish(1);
  RemoteWeightSubscriber bf16(wide(), PanelDtype::kBf16), f32(wide());
  auto got = receive(bf16, 1, only_memory(at));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(holds_version(**got, 1));
  auto waits = std::async(std::launch::async, [&] { return receive(f32, 2, only_tcp(at)); });
  ASSERT_TRUE(comes_true([&] { return source.publisher->counters().server.queued == 1; }));
  publish(2);
  got = waits.get();
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(holds_version(**got, 2));
  EXPECT_EQ(packings, 2) << "once a version";
  EXPECT_EQ(panels.use_count(), 1) << "nobody keeps them";
}

// An engine that keeps its weights otherwise than the run asks for its own type, and gets it with
// the next version; when nobody asks any more, it is no longer made.
TEST(ImageWriter, AnotherTypeComesWithTheNextVersionThatIsPublished) {
  PublisherOptions options;
  options.image = PanelDtype::kBf16;
  Source source(tiny(), options);
  const WeightLocation at = source.publish(1);
  const auto counters = [&] { return source.publisher->counters(); };
  for (const bool memory : {true, false}) {
    RemoteWeightSubscriber subscriber(tiny(), PanelDtype::kInt8);
    const core::Version next = memory ? 2 : 30;
    auto got = std::async(std::launch::async, [&] {
      return receive(subscriber, next, memory ? only_memory(at) : only_tcp(at));
    });
    ASSERT_TRUE(comes_true([&] { return counters().server.queued == 1; }));
    source.publish(next);
    const auto panels = got.get();
    ASSERT_TRUE(panels) << panels.error().message;
    EXPECT_EQ((*panels)->dtype(), PanelDtype::kInt8);
    EXPECT_TRUE(holds_version(**panels, next));
  }
  const std::uint64_t made = counters().snapshots_made;
  EXPECT_EQ(made, 4u) << "two of each type";
  RemoteWeightSubscriber run(tiny(), PanelDtype::kBf16);
  for (core::Version version = 31; version < 60; ++version)
    EXPECT_TRUE(receive(run, version, source.publish(version)));
  RemoteWeightSubscriber late(tiny(), PanelDtype::kInt8);
  auto got = std::async(std::launch::async, [&] { return receive(late, 60, only_memory(at)); });
  ASSERT_TRUE(comes_true([&] { return counters().server.queued == 1; })) << "59 was not made";
  source.publish(60);
  const auto panels = got.get();
  ASSERT_TRUE(panels) << panels.error().message;
  EXPECT_TRUE(holds_version(**panels, 60));
}

}  // namespace
}  // namespace troupe::weights
