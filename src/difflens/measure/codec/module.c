/* What Python sees of the codec: buffers in, bytes out; no arithmetic here. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

#include "codec.h"

void difflens_start_codec(void);

struct module_state {
    const struct walks *walks;
};

static const struct walks *walks_of(PyObject *module)
{
    return ((struct module_state *)PyModule_GetState(module))->walks;
}

/* How many words a buffer has; -1 with an error set where the kind or the size cannot be. */
static Py_ssize_t words_of(Py_ssize_t size, struct kind kind)
{
    int bits = 8 * kind.width;
    int good = (kind.width == 1 || kind.width == 2 || kind.width == 4 || kind.width == 8)
               && kind.mantissa >= 0 && kind.exponent >= 0 && kind.exponent <= 11
               && (kind.exponent == 0 || kind.mantissa + kind.exponent + 1 == bits)
               && size % kind.width == 0 && size / kind.width <= MOST;
    if (good) return size / kind.width;
    PyErr_Format(PyExc_ValueError, "%zd bytes are no chunk of words of %d bytes, %d + %d bits",
                 size, kind.width, kind.exponent, kind.mantissa);
    return -1;
}

static PyObject *encode(PyObject *module, PyObject *args)
{
    const struct walks *walks = walks_of(module);
    Py_buffer base = {.buf = NULL}, target;
    PyObject *first, *result = NULL;
    struct kind kind;
    int back;
    if (!PyArg_ParseTuple(args, "Oy*(iii)i", &first, &target, &kind.width, &kind.mantissa,
                          &kind.exponent, &back))
        return NULL;
    Py_ssize_t n = words_of(target.len, kind);
    if (n < 0) goto end;
    if (first != Py_None && PyObject_GetBuffer(first, &base, PyBUF_SIMPLE) < 0) goto end;
    if (base.buf && base.len != target.len) {
        PyErr_SetString(PyExc_ValueError, "the base has another size than the target");
        goto end;
    }
    size_t room = (size_t)target.len * 2 + 16384;
    uint8_t *out = malloc(room);
    ptrdiff_t size = -1;
    if (out) {
        Py_BEGIN_ALLOW_THREADS
        size = difflens_encode(walks, base.buf, target.buf, (size_t)n, kind, back, out, room);
        Py_END_ALLOW_THREADS
    }
    if (size < 0) PyErr_NoMemory();
    else result = PyBytes_FromStringAndSize((const char *)out, size);
    free(out);
end:
    if (base.buf) PyBuffer_Release(&base);
    PyBuffer_Release(&target);
    return result;
}

static PyObject *decode(PyObject *module, PyObject *args)
{
    const struct walks *walks = walks_of(module);
    Py_buffer data, base = {.buf = NULL}, out;
    PyObject *first;
    struct kind kind;
    int backwards, done = 0;
    if (!PyArg_ParseTuple(args, "y*Ow*(iii)p", &data, &first, &out, &kind.width, &kind.mantissa,
                          &kind.exponent, &backwards))
        return NULL;
    Py_ssize_t n = words_of(out.len, kind);
    if (n >= 0 && first != Py_None && PyObject_GetBuffer(first, &base, PyBUF_SIMPLE) < 0) n = -1;
    if (n >= 0 && base.buf && base.len != out.len) {
        PyErr_SetString(PyExc_ValueError, "the base has another size than the target");
        n = -1;
    }
    if (n >= 0) {
        Py_BEGIN_ALLOW_THREADS
        done = difflens_decode(walks, data.buf, (size_t)data.len, base.buf, out.buf, (size_t)n,
                               kind, backwards);
        Py_END_ALLOW_THREADS
        if (done == 0) PyErr_SetString(PyExc_ValueError, "the chunk is damaged");
        if (done == -1) PyErr_NoMemory();
        if (done == -2) PyErr_SetString(PyExc_ValueError, "the chunk cannot be applied backwards");
    }
    if (base.buf) PyBuffer_Release(&base);
    PyBuffer_Release(&data);
    PyBuffer_Release(&out);
    if (n < 0 || done != 1) return NULL;
    Py_RETURN_NONE;
}

static PyObject *crc32c(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer data;
    unsigned int before = 0;
    uint32_t sum;
    if (!PyArg_ParseTuple(args, "y*|I", &data, &before)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    sum = difflens_crc32c(data.buf, (size_t)data.len, before);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(sum);
}

/* Words of floats only: how many, -1 with an error set. */
static Py_ssize_t floats_of(Py_ssize_t size, struct kind kind)
{
    if (kind.exponent > 1 && kind.mantissa > 0 && (kind.exponent < 9 || kind.width == 8)) return words_of(size, kind);
    PyErr_SetString(PyExc_ValueError, "only floats are predicted");
    return -1;
}

static PyObject *scale(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer in, out;
    struct kind from, to;
    double factor;
    int times, backwards;
    if (!PyArg_ParseTuple(args, "y*w*((iii)(iii))(di)p", &in, &out, &from.width, &from.mantissa,
                          &from.exponent, &to.width, &to.mantissa, &to.exponent, &factor, &times,
                          &backwards))
        return NULL;
    Py_ssize_t n = floats_of(in.len, backwards ? to : from);
    Py_ssize_t m = n < 0 ? -1 : floats_of(out.len, backwards ? from : to);
    if (n >= 0 && m >= 0 && n != m) {
        PyErr_SetString(PyExc_ValueError, "the base has another size than the target");
        m = -1;
    }
    if (n >= 0 && m >= 0) {
        Py_BEGIN_ALLOW_THREADS
        difflens_scale(in.buf, out.buf, (size_t)n, from, to, factor, times, backwards);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    if (n < 0 || m < 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *add_product(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer in, out, left, right;
    struct kind kind;
    Py_ssize_t start, columns;
    int rounded;
    if (!PyArg_ParseTuple(args, "y*w*(iii)(nnp)(y*y*)", &in, &out, &kind.width, &kind.mantissa,
                          &kind.exponent, &start, &columns, &rounded, &left, &right))
        return NULL;
    Py_ssize_t n = floats_of(in.len, kind), rank = 0;
    int good = n >= 0;
    if (good) {
        Py_ssize_t rows = 0;
        good = columns > 0 && columns <= PTRDIFF_MAX / 8 && start >= 0 && in.len == out.len
               && right.len % (columns * 8) == 0
               && !(((uintptr_t)left.buf | (uintptr_t)right.buf) % sizeof(double));
        if (good) rank = right.len / 8 / columns;
        good = good && rank > 0 && left.len % (rank * 8) == 0;
        if (good) rows = left.len / 8 / rank;
        /* the last element lies in row (start + n - 1) / columns, which must be one of ours */
        good = good && start <= PTRDIFF_MAX - n && (!n || (start + n - 1) / columns < rows);
        if (!good) PyErr_SetString(PyExc_ValueError, "the factors do not fit the tensor");
    }
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        difflens_add_product(in.buf, out.buf, (size_t)n, kind, (uint64_t)start, (size_t)columns,
                             left.buf, right.buf, (size_t)rank, rounded);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&in);
    PyBuffer_Release(&out);
    PyBuffer_Release(&left);
    PyBuffer_Release(&right);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"encode", encode, METH_VARARGS,
     "encode(base, target, (width, mantissa, exponent), back)\n\n"
     "Code a chunk against another one, or alone where the base is None."},
    {"decode", decode, METH_VARARGS,
     "decode(data, base, out, (width, mantissa, exponent), backwards)\n\n"
     "Fill `out`; ValueError where the data are damaged."},
    {"scale", scale, METH_VARARGS,
     "scale(base, out, (kind, kind_of_out), (factor, times), backwards)\n\n"
     "Fill `out` with the base times the factor, so many times; backwards with what it was."},
    {"add_product", add_product, METH_VARARGS,
     "add_product(base, out, kind, (start, columns, rounded), (left, right))\n\n"
     "Fill `out` with elements from `start` on of a matrix plus the product of two."},
    {"crc32c", crc32c, METH_VARARGS, "crc32c(data, before=0)\n\nThe checksum of Castagnoli."},
    {NULL, NULL, 0, NULL},
};

/* DIFFLENS_LEVEL names the loops to use, for tests; one this processor lacks is an error. */
static int start(PyObject *module)
{
    const char *level = getenv("DIFFLENS_LEVEL");
    struct module_state *state = PyModule_GetState(module);
    state->walks = difflens_pick_walks(level && *level ? level : NULL);
    if (!state->walks) {
        PyErr_Format(PyExc_RuntimeError, "this processor cannot run the loops named '%s'", level);
        return -1;
    }
    difflens_start_codec();
    return PyModule_AddStringConstant(module, "NAME", state->walks->name);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, start}, {0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_codec",
    .m_doc = "The compiled codec of patches.",
    .m_size = sizeof(struct module_state),
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__codec(void)
{
    return PyModuleDef_Init(&definition);
}
