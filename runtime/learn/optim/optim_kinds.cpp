#include "runtime/learn/optim/optim_kinds.hpp"

#include <array>

namespace troupe::learn {
namespace {

using kernels::MomentCode;

constexpr std::array kKinds = {
    OptimKind{.name = "adamw", .alias = "adam", .help = "AdamW with f32 moments"},
    OptimKind{.name = "adamw_bf16",
              .help = "AdamW with bf16 moments",
              .first = MomentCode::kBf16,
              .second = MomentCode::kBf16},
    OptimKind{.name = "adamw_8bit",
              .alias = "adamw_bnb_8bit",
              .help = "AdamW with 8-bit moments, in blocks of 4,096",
              .first = MomentCode::kSigned8,
              .second = MomentCode::kUnsigned8},
    OptimKind{.name = "muon",
              .help = "Muon for the matrices of the layers, AdamW for the rest",
              .muon = true},
    OptimKind{.name = "sgd", .help = "gradient descent with momentum", .adam = false},
};

std::int64_t bytes_of(const std::optional<MomentCode>& code) {
  return code ? kernels::code_bytes(*code) : std::int64_t{sizeof(float)};
}

}  // namespace

std::int64_t OptimKind::bytes() const {
  return bytes_of(first) + (adam ? bytes_of(second) : 0);
}

std::span<const OptimKind> OptimKind::all() {
  return kKinds;
}

}  // namespace troupe::learn
