#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "client/command/data/ingest/ingest_kind.h"

namespace batchwright {

void add_folder(CLI::App& command, FolderOptions& folder, IngestOptions& options) {
  command.add_option("DIR", folder.folder, "Folder, searched recursively")->required();
  CLI::Option* key = add_choice<bool>(command, "--key", folder.key_by_basename,
                                      {{"path", false}, {"basename", true}});
  key->description("Keys: the path below DIR, or the name of the file, without extension");
  // The label is a part of the path that a name does not have.
  command
      .add_flag("--label-from-folder", options.annotations.label_from_folder,
                "Store the first folder below DIR as scalar field `label`")
      ->excludes(key);
}

void add_files(IngestInput& input, FileList list) {
  const auto append = [](std::string& text, const std::string& more) {
    if (!text.empty() && !more.empty()) text += ", ";
    text += more;
  };
  append(input.passed_over, passed_over(list));
  append(input.left_out, left_out(list));
  std::move(list.files.begin(), list.files.end(), std::back_inserter(input.files));
}

Result<IngestInput> input_of_folder(const FolderOptions& folder, const IngestOptions& options,
                                    std::span<const std::string_view> extensions) {
  auto list = find_files(folder.folder, extensions, options.excluded);
  if (!list) return list.error();
  if (folder.key_by_basename) key_by_basename(*list);
  IngestInput input;
  input.named_for = folder.folder;
  add_files(input, std::move(*list));
  input.annotations = options.annotations;
  return input;
}

}  // namespace batchwright
