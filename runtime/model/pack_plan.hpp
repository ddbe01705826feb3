// How the parameters of a model become its image, the bytes of its packed weights without the
// rotary tables: in units, each of which packs or copies a range of the flat parameters to one
// place of the image (for int8 panels, and to their scales). The bits are a function of the
// parameters, the model and the storage type alone. Units may be filled in any order and by any
// member of a team; on a device by one thread, since units from the host share a staging buffer.
#pragma once

#include "kernels/panels.hpp"
#include "runtime/core/buffer.hpp"
#include "runtime/core/range.hpp"
#include "runtime/model/packed_layout.hpp"
#include "runtime/model/params.hpp"

#include <cstdint>
#include <vector>

namespace troupe::model {

class PackPlan {
 public:
  // `memory`: where images lie and are computed. With PanelRoom::kPart an image is the room of a
  // part, and only what stretches_in names of that part is filled.
  PackPlan(const ModelSpec& spec,
           kernels::PanelDtype dtype,
           core::Memory& memory,
           PanelRoom room = PanelRoom::kModel);

  std::int64_t flat_size() const { return flat_size_; }  // elements, ParamLayout::total
  std::int64_t image_bytes() const { return image_bytes_; }
  std::int64_t units() const { return units_; }
  kernels::PanelDtype dtype() const { return dtype_; }
  core::Memory& memory() const { return *memory_; }

  // The bytes of the image that a unit writes, without scales.
  struct Place {
    std::int64_t begin = 0, end = 0;
  };
  Place place_of(std::int64_t unit) const;
  // The place of its scales; empty for other than int8 panels.
  Place scales_of(std::int64_t unit) const;
  // The units that write bytes of [begin, end), in the order of their places. Not for int8.
  std::vector<std::int64_t> units_in(std::int64_t begin, std::int64_t end) const;

  // Neighbouring units.
  struct Stretch {
    std::int64_t first_unit = 0, units = 0;
  };
  // What tensors (or rows of panels) that begin in `flat` of the parameters become, whole.
  std::vector<Stretch> stretches_in(core::Range flat) const;

  // Fills a unit of `image`. `flat`: the parameters in the order of ParamLayout, on the host or,
  // with `here`, in the image's memory.
  void fill_unit(std::int64_t unit,
                 const float* flat,  // from element `first` on
                 char* image,
                 bool here = false,
                 std::int64_t first = 0);
  // Like fill_unit, but writes the unit's bytes at `out` and its scales, if it has any, at `scales`
  // instead, both 64-byte aligned. Host.
  void fill_unit_at(std::int64_t unit, const float* flat, char* out, char* scales = nullptr);
  // Fills the whole image from parameters in the same memory.
  void fill(const float* flat, char* image);
  // Fills what stretches_in(`part`) names. `numbers`: the elements of `part`.
  void fill_part(core::Range part, const float* numbers, char* image);

 private:
  // A range of the flat parameters: rows [n][k] that become panels, or numbers that are copied.
  struct Piece {
    std::int64_t out = 0;    // bytes from the start of the image
    std::int64_t scale = 0;  // of int8 panels
    kernels::PanelDtype dtype = kernels::PanelDtype::kF32;
    std::int64_t flat = 0;        // offset of the first element in the flat buffer
    std::int64_t n = 0, k = 0;    // a copied piece has n elements and k = 1
    std::int64_t unit_rows = 0;   // rows of a unit; a multiple of 16 if they become panels
    std::int64_t first_unit = 0;  // index of its first unit
    bool panels = false;          // whether the rows become panels
    bool plus_one = false;        // stores 1 + the number
  };
  void plan(const ModelSpec& spec, const PackedLayout& packed);
  void plan_experts(const MoeSpec& moe,
                    std::int64_t hidden,
                    const PackedMoe& packed,
                    const MoeOffsets& at);
  void add_panels(const kernels::Panels& out, std::int64_t flat, std::int64_t n, std::int64_t k);
  // Does nothing when `out` is null: the model has no such tensor.
  void add_copy(const float* out, std::int64_t flat, std::int64_t count, bool plus_one = false);
  const Piece& piece_of(std::int64_t unit) const;
  std::int64_t row_of(const Piece& piece, std::int64_t unit) const;
  // Byte offset of row `row` of a piece in the image.
  std::int64_t offset_of(const Piece& piece, std::int64_t row) const;
  // Fills rows [begin, end) of a piece at `out`; `from` is in the image's memory.
  void fill_rows(const Piece& piece,
                 std::int64_t begin,
                 std::int64_t end,
                 const float* from,
                 char* out,
                 float* scales);
  static float* scales_at(const Piece& piece, std::int64_t row, char* image);

  kernels::PanelDtype dtype_;
  core::Memory* memory_;
  std::int64_t flat_size_ = 0;
  std::int64_t image_bytes_ = 0;
  std::int64_t units_ = 0;
  std::vector<Piece> pieces_;
  std::vector<std::size_t> by_place_;  // indices of pieces_, by their places in the image
  core::Buffer<float> ones_;           // used by families with `norm_plus_one`
  core::Buffer<float> staging_;        // a unit in transit from the host to a device
};

}  // namespace troupe::model
