#include "client/library/memory/private_view.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include <algorithm>

namespace batchwright {
namespace {

bool has_hugetlb_pages(int arena) {
  struct statfs status {};
  return fstatfs(arena, &status) != 0 ||
         static_cast<std::uint32_t>(status.f_type) == HUGETLBFS_MAGIC;
}

}  // namespace

void PrivateView::Unmap::operator()(std::byte* start) const noexcept { munmap(start, bytes); }

std::shared_ptr<PrivateView> PrivateView::map(const Mapping& arena) {
  if (has_hugetlb_pages(arena.descriptor())) return nullptr;
  // Not populated by this call: for a mapping that may be written to, that would copy every page.
  // No memory is set aside for copies of all of them, for so many there never are.
  const std::size_t bytes = arena.bytes().size();
  void* address =
      mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_NORESERVE, arena.descriptor(), 0);
  if (address == MAP_FAILED) return nullptr;
  Start start(static_cast<std::byte*>(address), Unmap{bytes});
  // Memory that is locked is copied as a whole once it may be written to, and no copy is dropped.
  if (madvise(address, bytes, MADV_DONTNEED) != 0) return nullptr;
  if (mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) return nullptr;
  std::shared_ptr<PrivateView> view(new PrivateView(std::move(start)));
  if (!view->copies_.can_tell()) return nullptr;
  view->drop({0, bytes / page_bytes()});  // its pages are entered, and marked
  return view;
}

Pages PrivateView::pages_of(const Place& place) {
  return {place.offset / page_bytes(),
          (place.offset + place.bytes + page_bytes() - 1) / page_bytes()};
}

std::optional<std::size_t> PrivateView::drop(const Pages& pages) noexcept {
  const auto copies = copies_.drop(pages);
  if (!copies) keeps_copies_ = true;
  return copies;
}

bool PrivateView::hold(const Place& place) {
  const Pages pages = pages_of(place);
  {
    const MutexLock lock(mutex_);
    if (keeps_copies_) return false;
    const auto shares = [&pages](const Pages& other) {
      return pages.first < other.end && other.first < pages.end;
    };
    if (std::any_of(held_.begin(), held_.end(), shares)) return false;
    held_.push_back(pages);
  }
  if (drop(pages)) return true;
  let_go(pages);
  return false;
}

std::size_t PrivateView::end(const Place& place) noexcept {
  const Pages pages = pages_of(place);
  const auto copies = drop(pages);
  let_go(pages);
  return copies.value_or(pages.end - pages.first);
}

void PrivateView::let_go(const Pages& pages) noexcept {
  const MutexLock lock(mutex_);
  held_.erase(std::find(held_.begin(), held_.end(), pages));
}

}  // namespace batchwright
