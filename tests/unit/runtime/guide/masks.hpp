// Vocabularies small enough to work masks out by hand, and a guide with its masks as texts.
#pragma once

#include "apps/cli/byte_tokenizer.hpp"
#include "runtime/guide/guide_maker.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::guide::test {

inline std::string byte_json() {
  return cli::byte_tokenizer().dump();
}

// A byte-level tokenizer with these tokens, ids ascending, and one that ends a text behind them.
inline std::string word_json(const std::vector<std::string>& words) {
  nlohmann::json tokenizer = cli::byte_tokenizer();
  tokenizer["model"]["vocab"] = nlohmann::json::object();
  for (std::size_t id = 0; id < words.size(); ++id)
    tokenizer["model"]["vocab"][words[id]] = id;
  tokenizer["added_tokens"][0]["id"] = words.size();
  return tokenizer.dump();
}

// Finds the library in the build folder, unless the environment names one.
inline GuideMaker maker_of(std::string json, std::int64_t vocab, const GuideBounds& bounds = {}) {
  const char* const build = std::getenv("TROUPE_BUILD_DIR");
  const std::string library =
      std::string(build != nullptr ? build : "build") + "/libtroupe_guide.so";
  ::setenv("TROUPE_GUIDE_LIBRARY", library.c_str(), 0);
  return GuideMaker([json = std::move(json)] { return core::Result<std::string>(json); }, vocab,
                    bounds);
}

inline std::unique_ptr<engine::TokenGuide> make(GuideMaker maker, const Grammar& grammar) {
  const auto made = maker.make(grammar);
  EXPECT_TRUE(made) << (made ? "" : made.error().message);
  return made ? made->get()->clone().value() : nullptr;
}

class Guide {
 public:
  explicit Guide(std::unique_ptr<engine::TokenGuide> guide) : guide_(std::move(guide)) {}

  engine::TokenGuide& get() { return *guide_; }
  Guide clone() const { return Guide(guide_->clone().value()); }
  bool may_end() { return mask().may_end; }
  std::vector<std::int32_t> ids() {
    const engine::GuideMask seen = mask();
    std::vector<std::int32_t> ids;
    for (std::size_t id = 0; id < seen.words.size() * 32; ++id) {
      if ((seen.words[id / 32] >> (id % 32) & 1u) != 0)
        ids.push_back(static_cast<std::int32_t>(id));
    }
    return ids;
  }
  // Of the vocabulary of bytes.
  std::string allowed() {
    std::string bytes;
    for (const std::int32_t id : ids())
      bytes += static_cast<char>(id);
    return bytes;
  }
  void take_id(std::int32_t id) {
    const auto taken = guide_->take(id);
    EXPECT_TRUE(taken) << (taken ? "" : taken.error().message);
  }
  void take(std::string_view bytes) {
    for (const char byte : bytes)
      take_id(static_cast<unsigned char>(byte));
  }

 private:
  engine::GuideMask mask() {
    const auto mask = guide_->mask();
    EXPECT_TRUE(mask) << (mask ? "" : mask.error().message);
    return mask ? *mask : engine::GuideMask{};
  }

  std::unique_ptr<engine::TokenGuide> guide_;
};

}  // namespace troupe::guide::test
