/* What Python sees of the kernel: buffers in, a state filled; no arithmetic here. */
#include "module.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[DTYPES] = {
    [BOOL] = "BOOL", [U8] = "U8", [I8] = "I8", [U16] = "U16", [I16] = "I16", [U32] = "U32",
    [I32] = "I32", [U64] = "U64", [I64] = "I64", [F4] = "F4", [F8_E4M3] = "F8_E4M3",
    [F8_E5M2] = "F8_E5M2", [F8_E4M3FNUZ] = "F8_E4M3FNUZ", [F8_E5M2FNUZ] = "F8_E5M2FNUZ",
    [F8_E8M0] = "F8_E8M0", [F16] = "F16", [BF16] = "BF16", [F32] = "F32", [F64] = "F64",
};

/* The parts of a complex number are scanned as floats: DTYPES where the name is unknown. */
static enum dtype find(const char *name)
{
    if (strcmp(name, "C64") == 0) return F32;
    for (int type = 0; type < DTYPES; type++)
        if (strcmp(name, names[type]) == 0) return (enum dtype)type;
    return DTYPES;
}

/* How many elements fill these bytes; -1 where none do. */
static Py_ssize_t elements(enum dtype type, Py_ssize_t size)
{
    if (type == F4) return size <= PY_SSIZE_T_MAX / 2 ? size * 2 : -1;
    Py_ssize_t width = (Py_ssize_t)difflens_size(type, 1);
    return size % width ? -1 : size / width;
}

static int check(const char *left_name, const char *right_name, const Py_buffer *left,
                 const Py_buffer *right, const Py_buffer *state)
{
    enum dtype left_type = find(left_name), right_type = find(right_name);
    if (left_type == DTYPES || right_type == DTYPES)
        PyErr_Format(PyExc_ValueError, "the kernel cannot decode %s",
                     left_type == DTYPES ? left_name : right_name);
    else if (state->len != (Py_ssize_t)sizeof(struct state))
        PyErr_Format(PyExc_ValueError, "a state has %zu bytes, not %zd", sizeof(struct state),
                     state->len);
    else if ((strcmp(left_name, "C64") == 0) != (strcmp(right_name, "C64") == 0))
        PyErr_SetString(PyExc_ValueError, "complex numbers are compared with complex numbers only");
    else if (elements(left_type, left->len) < 0
             || elements(left_type, left->len) != elements(right_type, right->len)
             || (strcmp(left_name, "C64") == 0 && left->len % 8))
        PyErr_Format(PyExc_ValueError, "%zd bytes of %s and %zd of %s are not as many elements",
                     left->len, left_name, right->len, right_name);
    else
        return 1;
    return 0;
}

static PyObject *scan(PyObject *module, PyObject *args)
{
    const struct loops *loops = ((struct module_state *)PyModule_GetState(module))->loops;
    Py_buffer left, right, out;
    const char *left_name, *right_name;
    double epsilon;
    if (!PyArg_ParseTuple(args, "y*y*ssdw*", &left, &right, &left_name, &right_name, &epsilon, &out))
        return NULL;
    int good = check(left_name, right_name, &left, &right, &out);
    if (good) {
        enum dtype left_type = find(left_name), right_type = find(right_name);
        size_t n = (size_t)elements(left_type, left.len);
        struct state state;
        memcpy(&state, out.buf, sizeof state); /* the caller's bytes may be unaligned */
        Py_BEGIN_ALLOW_THREADS
        fenv_t caller;
        fegetenv(&caller);
        fesetenv(FE_DFL_ENV); /* a framework may have set subnormals to count as zero */
        difflens_scan(loops, &state, left_type, left.buf, right_type, right.buf, n, epsilon);
        fesetenv(&caller);
        Py_END_ALLOW_THREADS
        memcpy(out.buf, &state, sizeof state);
    }
    PyBuffer_Release(&left);
    PyBuffer_Release(&right);
    PyBuffer_Release(&out);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

/* Check what Python gave for one side, and turn it into a place. */
static int place_of(const char *name, int descriptor, unsigned long long offset, struct place *out)
{
    enum dtype type = find(name);
    if (type == DTYPES) {
        PyErr_Format(PyExc_ValueError, "the kernel cannot decode %s", name);
        return 0;
    }
    *out = (struct place){descriptor, offset, type};
    return 1;
}

static PyObject *scan_files(PyObject *module, PyObject *args)
{
    const struct loops *loops = ((struct module_state *)PyModule_GetState(module))->loops;
    int left_file, right_file, looking;
    unsigned long long left_at, right_at;
    const char *left_name, *right_name;
    Py_ssize_t n;
    double epsilon;
    Py_buffer out;
    if (!PyArg_ParseTuple(args, "(iKs)(iKs)ndpw*", &left_file, &left_at, &left_name, &right_file,
                          &right_at, &right_name, &n, &epsilon, &looking, &out))
        return NULL;
    struct place left, right;
    int good = place_of(left_name, left_file, left_at, &left)
               && place_of(right_name, right_file, right_at, &right);
    if (good && (n < 0 || out.len != (Py_ssize_t)sizeof(struct state)
                 || difflens_size(left.type, (size_t)n) == (size_t)-1
                 || difflens_size(right.type, (size_t)n) == (size_t)-1)) {
        PyErr_Format(PyExc_ValueError, "%zd elements or a state of %zd bytes cannot be", n, out.len);
        good = 0;
    }
    enum reading read = DONE;
    if (good) {
        struct state state;
        memcpy(&state, out.buf, sizeof state);
        Py_BEGIN_ALLOW_THREADS
        fenv_t caller;
        fegetenv(&caller);
        fesetenv(FE_DFL_ENV);
        read = difflens_scan_files(loops, &state, &left, &right, (size_t)n, epsilon, &looking);
        fesetenv(&caller);
        Py_END_ALLOW_THREADS
        memcpy(out.buf, &state, sizeof state);
        if (read == FAILED) PyErr_SetFromErrno(PyExc_OSError);
        if (read == SHORT) PyErr_SetString(PyExc_EOFError, "the file ends before the tensor does");
    }
    PyBuffer_Release(&out);
    if (!good || read != DONE) return NULL;
    return PyBool_FromLong(looking);
}

static PyObject *merge(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer first, later;
    if (!PyArg_ParseTuple(args, "w*y*", &first, &later)) return NULL;
    int good = first.len == (Py_ssize_t)sizeof(struct state) && later.len == first.len;
    if (good) {
        struct state a, b;
        memcpy(&a, first.buf, sizeof a);
        memcpy(&b, later.buf, sizeof b);
        fenv_t caller;
        fegetenv(&caller);
        fesetenv(FE_DFL_ENV);
        difflens_merge(&a, &b);
        fesetenv(&caller);
        memcpy(first.buf, &a, sizeof a);
    } else {
        PyErr_Format(PyExc_ValueError, "a state has %zu bytes, not %zd and %zd",
                     sizeof(struct state), first.len, later.len);
    }
    PyBuffer_Release(&first);
    PyBuffer_Release(&later);
    if (!good) return NULL;
    Py_RETURN_NONE;
}

static PyObject *same_bytes(PyObject *module, PyObject *args)
{
    (void)module;
    Py_buffer left, right;
    int same = 0;
    if (!PyArg_ParseTuple(args, "y*y*", &left, &right)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    same = left.len == right.len && memcmp(left.buf, right.buf, (size_t)left.len) == 0;
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&left);
    PyBuffer_Release(&right);
    return PyBool_FromLong(same);
}

static PyMethodDef methods[] = {
    {"scan", scan, METH_VARARGS,
     "scan(left, right, left_dtype, right_dtype, epsilon, state)\n\n"
     "Add two encoded buffers of as many elements to the state."},
    {"scan_files", scan_files, METH_VARARGS,
     "scan_files((file, offset, dtype), (file, offset, dtype), count, epsilon, looking, state)\n\n"
     "Read and scan; while looking, pass over equal bytes. Are all of them equal?"},
    {"read", difflens_read, METH_VARARGS,
     "read(table, out)\n\n"
     "Read tensors at (address, copy or 0, count, type) into squares, magnitudes, largest,\n"
     "nonfinite, zeros, moves; a copy is compared with and refreshed."},
    {"read_gradients", difflens_read_gradients, METH_VARARGS,
     "read_gradients(parameters, dtypes, table, out)\n\n"
     "Put the addresses of gradients into the table and read them; False where one is not usual."},
    {"read_weights", difflens_read_weights, METH_VARARGS,
     "read_weights(parameters, versions, table, out)\n\n"
     "Read parameters and keep their versions; False where one is not where the table has it."},
    {"are_as_read", difflens_are_as_read, METH_VARARGS,
     "are_as_read(parameters, versions)\n\nAre these still the versions of the parameters?"},
    {"bytes_of", difflens_bytes_of, METH_VARARGS,
     "bytes_of(tensor, dtype, count, size)\n\n"
     "Copy the first bytes of a tensor; None where it is not of that dtype and count, in memory,\n"
     "without gaps."},
    {"merge", merge, METH_VARARGS,
     "merge(state, later)\n\nAdd the state of the elements that follow."},
    {"same_bytes", same_bytes, METH_VARARGS,
     "same_bytes(left, right)\n\nAre the two buffers equal, byte for byte?"},
    {NULL, NULL, 0, NULL},
};

/* DIFFLENS_LEVEL names the loops to use, for tests; one this processor lacks is an error. */
static int start(PyObject *module)
{
    const char *level = getenv("DIFFLENS_LEVEL");
    const struct loops *loops = difflens_pick(level && *level ? level : NULL);
    if (!loops) {
        PyErr_Format(PyExc_RuntimeError, "this processor cannot run the loops named '%s'", level);
        return -1;
    }
    struct module_state *state = PyModule_GetState(module);
    state->loops = loops;
    if (difflens_start_tensors(state) < 0) return -1;
    return PyModule_AddStringConstant(module, "NAME", loops->name);
}

static void stop(void *module)
{
    struct module_state *state = PyModule_GetState(module);
    for (int i = 0; state && i < QUESTIONS; i++) Py_CLEAR(state->questions[i]);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, start}, {0, NULL}};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_scan",
    .m_doc = "The compiled kernel.",
    .m_size = sizeof(struct module_state),
    .m_methods = methods,
    .m_slots = slots,
    .m_free = stop,
};

PyMODINIT_FUNC PyInit__scan(void)
{
    return PyModuleDef_Init(&definition);
}
