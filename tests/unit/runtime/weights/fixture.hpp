// A tiny model whose weights tell their version, and waiting for what another thread or process
// does.
#pragma once

#include "runtime/core/secret.hpp"
#include "runtime/model/packed.hpp"
#include "runtime/model/params.hpp"
#include "runtime/weights/remote_subscriber.hpp"
#include "runtime/weights/shared_publisher.hpp"

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace troupe::weights {

inline constexpr core::Duration kSecond = std::chrono::seconds(1);
inline constexpr core::Duration kLong = std::chrono::seconds(60);
inline constexpr net::Patience kPatient{kLong};

inline model::ModelSpec tiny(std::int64_t vocab = 1037) {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.layers = 2;
  spec.hidden = 48;
  spec.heads = 4;
  spec.kv_heads = 2;
  spec.head_dim = 12;
  spec.ffn = 72;
  spec.vocab = vocab;
  spec.context = 32;
  spec.tied = false;
  return spec;
}

// Several buckets.
inline model::ModelSpec wide() {
  return tiny(40'009);
}

// Every weight of a version differs from the same weight of any other.
inline void write_version(model::ParamStore& params, core::Version version) {
  const float step = 1.0f + static_cast<float>(version) * 0x1p-12f;
  for (std::int64_t i = 0; i < params.size(); ++i)
    params.data()[i] = step * static_cast<float>(1 + i % 1009);
}

// True when the panels are those of that version, to the last bit.
inline bool holds_version(const model::PackedWeights& got, core::Version version) {
  model::ParamStore params(got.spec());
  write_version(params, version);
  model::PackedWeights wanted(got.spec(), got.dtype());
  wanted.fill({}, params, version);
  const auto spec = got.spec();
  // `got` may be a device's; `wanted` is the host's.
  const auto same_bytes = [&](const void* a, const void* b, std::size_t bytes) {
    std::vector<char> here(bytes);
    got.memory().download(here.data(), a, bytes);
    return std::memcmp(here.data(), b, bytes) == 0;
  };
  const auto same = [&](const float* a, const float* b, std::int64_t count) {
    return same_bytes(a, b, static_cast<std::size_t>(count) * sizeof(float));
  };
  const auto same_panels = [&](const kernels::Panels& a, const kernels::Panels& b, std::int64_t n,
                               std::int64_t k) {
    const auto bytes = static_cast<std::size_t>(kernels::packed_bytes(a.dtype, n, k));
    return a.dtype == b.dtype && same_bytes(a.data, b.data, bytes);
  };
  bool all = got.version() == version && same(got.final_norm(), wanted.final_norm(), spec.hidden) &&
             same_panels(got.head(), wanted.head(), spec.vocab, spec.hidden);
  for (std::int64_t i = 0; i < spec.layers; ++i) {
    const auto &a = got.layer(i), &b = wanted.layer(i);
    all = all && same(a.input_norm, b.input_norm, spec.hidden) &&
          same(a.ffn_norm, b.ffn_norm, spec.hidden) &&
          same_panels(a.qkv, b.qkv, spec.qkv_width(), spec.hidden) &&
          same_panels(a.o, b.o, spec.hidden, spec.q_width()) &&
          same_panels(a.gate_up, b.gate_up, 2 * spec.ffn, spec.hidden) &&
          same_panels(a.down, b.down, spec.hidden, spec.ffn);
  }
  if (!got.memory().on_host()) return all;
  std::vector<float> x(static_cast<std::size_t>(spec.hidden)), y = x;
  for (std::int32_t token = 0; token < spec.vocab; ++token) {
    got.embed(&token, 0, 1, x.data());
    wanted.embed(&token, 0, 1, y.data());
    all = all && x == y;
  }
  return all;
}

// Waits for another thread or process; false after a minute.
template <class Condition>
bool comes_true(Condition condition) {
  const auto until = std::chrono::steady_clock::now() + kLong;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

// The key with which tests sign, and the key of a location for it.
inline const net::SigningKey& tests_key() {
  static const auto key = net::SigningKey::create();
  TROUPE_CHECK(key.has_value(), "a signing key");
  return *key;
}
inline std::string tests_location_key() {
  return core::random_hex(kSecret_chars / 2) + tests_key().public_key();
}

// Writes a version as a publisher with `tests_key` does.
inline void fill(Snapshot& snapshot,
                 core::TeamRunner& team,
                 ImageWriter& writer,
                 const model::ParamStore& params,
                 core::Version version) {
  std::vector<std::uint32_t> table(writer.shape().buckets);
  writer.write(team, params, snapshot.buckets(), table);
  const auto head = make_head(writer.shape(), version, table, tests_key());
  TROUPE_CHECK(head.has_value(), "signing");
  snapshot.begin(*head, table);
  snapshot.set_ready(writer.shape().buckets);
}

// A version of a model's weights as a publisher with `tests_key` has it.
inline std::shared_ptr<Snapshot> snapshot_of(const model::ModelSpec& spec,
                                             core::Version version,
                                             std::uint64_t bucket_bytes = kBucket_bytes) {
  model::ParamStore params(spec);
  write_version(params, version);
  core::SerialTeam team;
  ImageWriter writer(spec, kernels::PanelDtype::kF32, core::host_memory(), {}, bucket_bytes);
  auto snapshot = Snapshot::create(writer.shape());
  TROUPE_CHECK(snapshot.has_value(), "a snapshot");
  fill(**snapshot, team, writer, params, version);
  return *snapshot;
}

// An answer that gives it, and its bytes.
inline std::string stream_of(const Snapshot& snapshot) {
  Answer answer;
  answer.version = snapshot.version();
  answer.bytes = snapshot.shape().bytes();
  std::string bytes(reinterpret_cast<const char*>(&answer), sizeof answer);
  return bytes.append(snapshot.bytes(), snapshot.shape().bytes());
}

// A publisher and the master weights that it copies.
struct Source {
  explicit Source(const model::ModelSpec& spec, PublisherOptions options = {})
      : Source(spec, std::make_unique<core::SerialTeam>(), std::move(options)) {}
  Source(const model::ModelSpec& spec,
         std::unique_ptr<core::TeamRunner> on,
         PublisherOptions options = {})
      : team(std::move(on)), params(spec) {
    auto made = SharedWeightPublisher::create(std::move(options), *team);
    TROUPE_CHECK(made.has_value(), "a publisher");
    publisher = std::move(made).value();
  }
  WeightLocation publish(core::Version version) {
    write_version(params, version);
    const model::ParamStore there = params.to(team->memory());
    Offer offer;
    offer.version = version;
    offer.master = team->memory().on_host() ? &params : &there;
    auto location = publisher->publish(offer);
    TROUPE_CHECK(location.has_value(), "publishing");
    return *location;
  }
  std::unique_ptr<core::TeamRunner> team;
  model::ParamStore params;
  std::unique_ptr<SharedWeightPublisher> publisher;
};

inline net::OwnedFd connect_to(const WeightLocation& at, Wants way) {
  const auto until = std::chrono::steady_clock::now() + kLong;
  auto socket = way == Wants::kMemory ? net::connect_unix(at.socket, until)
                                      : net::connect_tcp(at.tcp_host, at.tcp_port, until);
  TROUPE_CHECK(socket.has_value(), "connecting");
  return std::move(socket).value();
}

inline Hello hello_with(const WeightLocation& at, Wants wants) {
  Hello hello;
  hello.wants = wants;
  std::memcpy(hello.secret, at.key.data(), kSecret_chars);
  return hello;
}

inline WeightLocation only_tcp(WeightLocation location) {
  location.socket.clear();
  return location;
}
inline WeightLocation only_memory(WeightLocation location) {
  location.tcp_port = 0;
  return location;
}

// The whole way of one version: fetch, all slices, take.
inline core::Result<std::shared_ptr<const model::PackedWeights>> receive(
    WeightSubscriber& subscriber,
    core::Version at_least,
    const WeightLocation& location,
    core::Duration budget = kLong) {
  TROUPE_TRY_ASSIGN(intake, subscriber.fetch(at_least, location, kLong));
  core::SerialTeam team;
  for (bool done = false; !done;) {
    TROUPE_TRY_ASSIGN(finished, intake->advance(team, budget));
    done = finished;
  }
  return intake->take();
}

}  // namespace troupe::weights
