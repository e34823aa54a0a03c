// `Zeroed`: an array of zeros whose pages the system hands out when they are touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace vec2emb {

// Whoever goes to such an array at random waits for the address of a page as long as for what is in it. Pages of 2 MiB
// are few enough for the processor to remember: putting 400,000 tokens into an index then takes two thirds of the time.
template <class T>
class Zeroed {
public:
    Zeroed() = default;
    Zeroed(std::size_t size, bool in_large_pages) : size_(size) {
        static_assert(sizeof(T) <= LARGE_PAGE);
#ifdef MADV_HUGEPAGE
        const std::size_t bytes = size * sizeof(T);
        if (in_large_pages && bytes >= LARGE_PAGE) {
            // One page more, so that the array can begin where a large page does.
            mapped_ = bytes + LARGE_PAGE;
            void* const start = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (start == MAP_FAILED) throw std::bad_alloc();
            start_ = start;
            const auto address = reinterpret_cast<std::uintptr_t>(start);
            values_ = reinterpret_cast<T*>((address + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE);
            ::madvise(values_, bytes, MADV_HUGEPAGE);  // a wish: without it the pages are small
            return;
        }
#endif
        static_cast<void>(in_large_pages);
        start_ = std::calloc(size, sizeof(T));
        if (!start_) throw std::bad_alloc();
        values_ = static_cast<T*>(start_);
    }
    Zeroed(Zeroed&& other) noexcept { swap(other); }
    Zeroed& operator=(Zeroed&& other) noexcept {
        swap(other);
        return *this;
    }
    ~Zeroed() {
#ifdef MADV_HUGEPAGE
        if (mapped_) {
            ::munmap(start_, mapped_);
            return;
        }
#endif
        std::free(start_);
    }

    std::size_t size() const { return size_; }
    const T& operator[](std::size_t i) const { return values_[i]; }
    T& operator[](std::size_t i) { return values_[i]; }

private:
    static constexpr std::size_t LARGE_PAGE = std::size_t{2} << 20;

    void* start_ = nullptr;
    std::size_t mapped_ = 0;  // bytes, if they were mapped
    T* values_ = nullptr;
    std::size_t size_ = 0;

    void swap(Zeroed& other) noexcept {
        std::swap(start_, other.start_);
        std::swap(mapped_, other.mapped_);
        std::swap(values_, other.values_);
        std::swap(size_, other.size_);
    }
};

}  // namespace vec2emb
