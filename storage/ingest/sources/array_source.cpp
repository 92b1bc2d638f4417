#include "storage/ingest/sources/array_source.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace batchwright {
namespace {

/// So many usable sequences decide which fields are aligned.
constexpr std::size_t kLookedAt = 100;

Error wrong(ErrorCode code, const std::string& where, std::string_view what) {
  return {code, fmt::format("{}: {}", where, what)};
}

/// "float32 [T, 80]", "int32 [U]", "int64 []".
std::string describe(const FieldSpec& field) {
  std::string text = fmt::format("{} [", dtype_name(field.dtype));
  if (field.kind == FieldKind::scalar) return text + "]";
  text += field.kind == FieldKind::independent ? "U" : "T";
  for (const std::uint32_t extent : field.shape) text += fmt::format(", {}", extent);
  return text + "]";
}

const ArrayCast* cast_for(const ArrayOptions& options, const std::string& name, Element element) {
  const ArrayCast* found = nullptr;
  for (const ArrayCast& each : options.casts) {
    if (each.field == name) return &each;
    // Without a name a cast to floats is for floats, and one to integers for integers.
    if (each.field.empty() && is_float(element) == (each.to <= DType::bfloat16)) found = &each;
  }
  return found;
}

/// An array whose elements a dataset holds. Errors: schema_mismatch.
Result<Array> storable(Array array, const std::string& name, const ArrayOptions& options) {
  // Before the cast: a number that does not fit is another complaint.
  if (!options.allow_nonfinite) {
    if (const auto odd = not_finite(array)) {
      return Error{ErrorCode::schema_mismatch,
                   fmt::format("{}; allowed: finite numbers, or all with --allow-nonfinite", *odd)};
    }
  }
  if (const ArrayCast* to = cast_for(options, name, array.element)) {
    return cast(std::move(array), to->to);
  }
  if (stored_as(array.element)) return array;
  return Error{
      ErrorCode::schema_mismatch,
      fmt::format("elements are {}; allowed: float32, float16, int64, int32, int16, "
                  "uint8, or --cast {}",
                  element_name(array.element), is_float(array.element) ? "float32" : "int32")};
}

/// The field that an array makes up, of this kind. Errors: schema_mismatch.
Result<FieldSpec> field_of(const std::string& name, FieldKind kind, const Array& array) {
  const auto refuse = [](std::string what) {
    return Error{ErrorCode::schema_mismatch, std::move(what)};
  };
  FieldSpec field{name, kind, *stored_as(array.element), {}, {}};
  if (kind == FieldKind::scalar) {
    // Both are ways to write a single value.
    if (array.shape.empty() || array.shape == std::vector<std::uint64_t>{1}) return field;
    return refuse(fmt::format("{}; a scalar has shape [] or [1]", describe(array)));
  }
  if (array.shape.empty()) return refuse("a single value; allowed: [T] or [T, D...]");
  for (std::size_t i = 0; i < array.shape.size(); ++i) {
    // A transcript may be empty; a sequence without frames may not.
    const bool may_be_empty = i == 0 && kind == FieldKind::independent;
    const std::uint64_t extent = array.shape[i];
    if ((extent == 0 && !may_be_empty) || extent > std::numeric_limits<std::uint32_t>::max()) {
      return refuse(
          fmt::format("shape [{}]; each extent is 1 to 2^32 - 1", fmt::join(array.shape, ", ")));
    }
    if (i > 0) field.shape.push_back(static_cast<std::uint32_t>(extent));
  }
  // validate() wants a primary field in a schema, so this one takes that part for the check.
  FieldSpec alone = field;
  alone.kind = FieldKind::primary;
  if (auto checked = validate(Schema{{alone}, {}}); !checked) {
    return refuse(checked.error().message);
  }
  return field;
}

std::uint32_t length_of(const Array& array, FieldKind kind) {
  return kind == FieldKind::scalar ? 1 : static_cast<std::uint32_t>(array.shape.front());
}

class ArraySource : public IngestSource {
 public:
  ArraySource(std::unique_ptr<const ArrayReader> reader, ArrayOptions options)
      : reader_(std::move(reader)), names_(reader_->names()), options_(std::move(options)) {}

  /// Sets the fields after the first usable sequences. Errors: as array_source().
  Result<void> look_at(std::span<const SourceFile> files) {
    if (auto checked = check_names(); !checked) return checked;
    std::vector<FieldKind> kinds(names_.size(), FieldKind::primary);
    std::string reason = "no files";
    std::size_t usable = 0;
    std::size_t alike = 0;  // and none usable
    for (const SourceFile& file : files) {
      const auto arrays = read(file);
      auto found =
          arrays ? fields_of(file, *arrays) : Result<std::vector<FieldSpec>>(arrays.error());
      if (!found) {
        // One reason will do where none is usable; it is mostly the same for all.
        if (&file == &files.front()) reason = found.error().message;
        // Of many files of one kind that no dataset holds the first ones tell.
        if (found.error().code == ErrorCode::schema_mismatch &&
            behind_place(file, found.error().message) == behind_place(files.front(), reason)) {
          ++alike;
        }
        if (usable == 0 && alike == kLookedAt) break;
        continue;
      }
      if (usable++ == 0) {
        fields_ = std::move(*found);
        first_ = file;
      } else {
        loosen(*found);
      }
      // Each look reads a file that load() will read again.
      if (usable == kLookedAt || !kinds_may_change()) return {};
    }
    if (usable > 0) return {};
    return Error{ErrorCode::invalid_argument,
                 fmt::format("none of the files is a usable array; the first: {}", reason)};
  }

  std::vector<FieldSpec> fields() const override { return fields_; }
  std::vector<std::pair<std::string, std::string>> settings() const override { return {}; }

  Result<Loaded> load(const SourceFile& file) const override {
    auto arrays = read(file);
    if (!arrays) return arrays.error();
    Loaded loaded;
    for (std::size_t i = 0; i < arrays->size(); ++i) {
      // Before the move: an aligned field is compared with the first array's shape.
      if (auto checked = check(file, i, *arrays); !checked) return checked.error();
      Array& array = (*arrays)[i];
      if (!array.remark.empty()) loaded.remarks.push_back({array.remark, reader_->where(file, i)});
      loaded.fields.push_back({std::move(array.bytes), length_of(array, fields_[i].kind)});
    }
    return loaded;
  }

 private:
  /// A message without the file that it begins with.
  std::string_view behind_place(const SourceFile& file, std::string_view message) const {
    const std::string place = reader_->where(file, 0);
    return message.substr(message.starts_with(place) ? place.size() : 0);
  }

  Result<void> check_names() const {
    const auto check = [this](const std::string& name, const char* option) -> Result<void> {
      if (name.empty() || std::find(names_.begin(), names_.end(), name) != names_.end()) return {};
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} {}: there is no such field; found: {}", option, name,
                               fmt::join(names_, ", "))};
    };
    for (const ArrayCast& each : options_.casts) {
      if (auto checked = check(each.field, "--cast"); !checked) return checked;
    }
    for (const auto& [name, kind] : options_.kinds) {
      if (auto checked = check(name, "--kind"); !checked) return checked;
      // The primary one gives a sequence its length, and can be nothing else.
      if (name == names_.front()) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("--kind {}: this field is the primary one", name)};
      }
    }
    return {};
  }

  std::optional<FieldKind> chosen_kind(std::size_t field) const {
    for (const auto& [name, kind] : options_.kinds) {
      if (name == names_[field]) return kind;
    }
    return std::nullopt;
  }

  /// Arrays whose elements a dataset holds.
  Result<std::vector<Array>> read(const SourceFile& file) const {
    auto arrays = reader_->read(file);
    if (!arrays) return arrays;
    for (std::size_t i = 0; i < arrays->size(); ++i) {
      auto array = storable(std::move((*arrays)[i]), names_[i], options_);
      if (!array) return wrong(array.error().code, reader_->where(file, i), array.error().message);
      (*arrays)[i] = std::move(*array);
    }
    return arrays;
  }

  /// What the fields are by this sequence alone.
  Result<std::vector<FieldSpec>> fields_of(const SourceFile& file,
                                           const std::vector<Array>& arrays) const {
    std::vector<FieldSpec> fields;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      FieldKind kind = FieldKind::primary;
      if (i > 0) {
        const bool same = !arrays[i].shape.empty() && arrays[i].shape[0] == arrays[0].shape[0];
        const FieldKind by_shape = same ? FieldKind::aligned : FieldKind::independent;
        kind = chosen_kind(i).value_or(arrays[i].shape.empty() ? FieldKind::scalar : by_shape);
      }
      auto field = field_of(names_[i], kind, arrays[i]);
      if (!field) return wrong(field.error().code, reader_->where(file, i), field.error().message);
      fields.push_back(std::move(*field));
    }
    return fields;
  }

  /// A field that is not aligned in one sequence is not aligned in any.
  void loosen(const std::vector<FieldSpec>& found) {
    for (std::size_t i = 1; i < found.size(); ++i) {
      if (found[i].kind == FieldKind::independent) {
        if (fields_[i].kind == FieldKind::aligned) fields_[i].kind = FieldKind::independent;
      }
    }
  }

  bool kinds_may_change() const {
    for (std::size_t i = 1; i < fields_.size(); ++i) {
      if (fields_[i].kind == FieldKind::aligned && !chosen_kind(i)) return true;
    }
    return false;
  }

  Result<void> check(const SourceFile& file, std::size_t i,
                     const std::vector<Array>& arrays) const {
    const FieldSpec& wanted = fields_[i];
    const auto found = field_of(wanted.name, wanted.kind, arrays[i]);
    const std::string where = reader_->where(file, i);
    if (!found) return wrong(found.error().code, where, found.error().message);
    if (*found != wanted) {
      return wrong(ErrorCode::schema_mismatch, where,
                   fmt::format("{}, but the dataset's is {}, which {} has set", describe(*found),
                               describe(wanted), reader_->where(first_, i)));
    }
    if (wanted.kind == FieldKind::aligned && arrays[i].shape[0] != arrays[0].shape[0]) {
      return wrong(
          ErrorCode::schema_mismatch, where,
          fmt::format("field \"{}\" has {} frames, \"{}\" has {}; they are aligned, or "
                      "--kind {}=independent",
                      wanted.name, arrays[i].shape[0], names_[0], arrays[0].shape[0], wanted.name));
    }
    return {};
  }

  std::unique_ptr<const ArrayReader> reader_;
  std::vector<std::string> names_;
  ArrayOptions options_;
  std::vector<FieldSpec> fields_;
  SourceFile first_;  // it has set the fields
};

}  // namespace

Result<std::unique_ptr<IngestSource>> array_source(std::unique_ptr<const ArrayReader> reader,
                                                   const ArrayOptions& options,
                                                   std::span<const SourceFile> files) {
  auto source = std::make_unique<ArraySource>(std::move(reader), options);
  if (auto looked = source->look_at(files); !looked) return looked.error();
  return std::unique_ptr<IngestSource>(std::move(source));
}

}  // namespace batchwright
